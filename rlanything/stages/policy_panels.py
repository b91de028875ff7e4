"""Measures a policy on the panels, in the format of evaluation/<arm>.json."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rlanything.config import Config
from rlanything.runs.layout import Layout, read_tasks

if TYPE_CHECKING:
    from rlanything.loop.rollout import RolloutWorker


def policy_results(config: Config, layout: Layout, worker: RolloutWorker, run_seed: int) -> dict[str, Any]:
    """Results on every policy panel.

    <panel>: task id -> success (1) or failure (0) of each repeat. `episode_steps`: panel -> task id -> lengths of the
    episodes. `success_within`: panel -> success rate with a limit of 1, 2, ... steps."""
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
        within[name] = success_within(tasks, played, evaluate.max_steps, worker.family)
    return {**outcomes, "episode_steps": steps, "success_within": within}
