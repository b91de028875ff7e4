"""Measures a policy on the panels, in the format of evaluation/<arm>.json."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rlanything.config import Config
from rlanything.runs.layout import Layout, read_tasks
from rlanything.stages.crashes import without_crashed

if TYPE_CHECKING:
    from rlanything.loop.rollout import RolloutWorker


def policy_results(config: Config, layout: Layout, worker: RolloutWorker, run_seed: int) -> dict[str, Any]:
    """Results on every policy panel.

    <panel>: task id -> success (1) or failure (0) of each repeat. `episode_steps`: panel -> task id -> lengths of the
    episodes. `success_within`: panel -> success rate with a limit of 1, 2, ... steps. `crashed`: panel -> episodes that
    crashed or timed out, only where there are any. Raises `MachineError` where all of a panel's did.
    """
    from rlanything.loop.panel import lengths, play_panel, success_within, successes

    evaluate = config.evaluate
    settings = (run_seed, evaluate.repeats, evaluate.temperature, evaluate.max_steps)
    outcomes: dict[str, Any] = {}
    steps: dict[str, Any] = {}
    within: dict[str, Any] = {}
    crashed: dict[str, int] = {}
    for name in config.tasks.policy_panels:
        tasks = read_tasks(layout.tasks(name))
        played, lost = without_crashed(f"evaluate: {name}", play_panel(worker, tasks, *settings))
        crashed |= {name: lost} if lost else {}
        outcomes[name] = successes(tasks, played)
        steps[name] = lengths(tasks, played)
        within[name] = success_within(tasks, played, evaluate.max_steps, worker.family)
    beside = {"episode_steps": steps, "success_within": within}
    return {**outcomes, **beside} | ({"crashed": crashed} if crashed else {})
