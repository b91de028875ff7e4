"""A policy on every panel that measures one: what evaluation/<arm>.json holds of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rlanything.config import Config
from rlanything.runs.layout import Layout, read_tasks

if TYPE_CHECKING:
    from rlanything.loop.rollout import RolloutWorker


def policy_results(config: Config, layout: Layout, worker: RolloutWorker, run_seed: int) -> dict[str, Any]:
    """The policy on every panel: outcomes, lengths of the episodes, and success within fewer steps."""
    from rlanything.loop.panel import lengths, play_panel, success_within, successes

    evaluate = config.evaluate
    settings = (run_seed, evaluate.repeats, evaluate.temperature, evaluate.max_steps)
    outcomes: dict[str, Any] = {}
    steps: dict[str, Any] = {}
    within: dict[str, Any] = {}
    for name in config.tasks.policy_panels:
        tasks = read_tasks(layout.tasks(name))
        played = play_panel(worker, tasks, *settings)
        outcomes[name] = successes(tasks, played)
        steps[name] = lengths(tasks, played)
        within[name] = success_within(tasks, played, evaluate.max_steps)
    return {**outcomes, "episode_steps": steps, "success_within": within}
