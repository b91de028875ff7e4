"""Whether the tasks that a run accepted can be solved, measured by tries of an expert or of a stronger checkpoint.

Fig. 7a of the paper: a stronger policy solves 94 to 97 % of the accepted tasks in one of 16 tries.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rlanything.buffer import read_snapshot, snapshot_path
from rlanything.config import Config
from rlanything.core.protocols import TaskFamily, Teacher
from rlanything.core.returned.answers import require_result
from rlanything.core.seeds import derive_seed
from rlanything.core.types import Task
from rlanything.loop.episodes import begin, deadline
from rlanything.loop.panel import play_panel, successes
from rlanything.loop.share import shared
from rlanything.runs import build
from rlanything.stages.crashes import say


def accepted_tasks(run: Path, iterations: int) -> list[Task]:
    """Every task that a finished run accepted, once, also tasks that were replaced later.

    A slot may accept a task that another slot accepted before and has no longer.

    iterations: `train.iterations`. A run has one more epoch, which only measures, so its last snapshot has the number
    `iterations` + 1.
    """
    buffer = read_snapshot(snapshot_path(run / "buffer", iterations + 1))
    accepted = [version.task for lineage in buffer.lineages for version in lineage.versions[1:]]
    return list({task.task_id: task for task in accepted}.values())


def solve(
    config: Config, root: Path, family: TaskFamily, tasks: Sequence[Task], run_seed: int
) -> dict[str, list[int]]:
    """Task id -> 1 (solved) or 0 for each try. The expert stops at its first success.

    Tries with `evaluate.solver`; if it is null, with the environment's expert. Tries that crash are left out, and so
    are those without a demonstration of the expert. How many tries of a checkpoint crashed is printed. {} without
    tasks, or without solver and expert.
    """
    solver, tries = config.evaluate.solver, config.evaluate.solver_tries
    if not tasks:
        return {}
    if solver is not None:
        prompts, acting = build.prompts(config, root, solver.prompts), config.rolling_out(solver)
        sampling = (acting.rollout.temperature, config.evaluate.max_steps)
        with build.player(acting, solver, root, family, prompts) as worker:
            played = play_panel(worker, tasks, derive_seed(run_seed, "solver"), tries, *sampling)
        say("evaluate: the solver's tries", played)
        return successes(tasks, played)
    if not isinstance(family, Teacher):
        return {}
    outcomes = shared(tasks, lambda part: [_by_expert(family, task, config, run_seed) for task in part])
    return {task.task_id: found for task, found in zip(tasks, outcomes, strict=True)}


def _by_expert(family: TaskFamily, task: Task, config: Config, run_seed: int) -> list[int]:
    """The results of the expert's tries, up to the first success. Tries without a result are left out."""
    outcomes: list[int] = []
    for number in range(config.evaluate.solver_tries):
        succeeded = demonstrated(family, task, derive_seed(run_seed, "expert", task.task_id, number), config)
        if succeeded is not None:
            outcomes.append(int(succeeded))
        if succeeded:
            break
    return outcomes


def demonstrated(
    family: TaskFamily, task: Task, seed: int, config: Config, most: int | None = None
) -> bool | None:
    """Whether the expert's commands solve the task; None when the try crashes, times out, or has no demonstration.

    most: how many of the commands are played at most; None: all.
    """
    try:
        with deadline(config.rollout.timeout_s):
            return _succeeds(family, task, seed, most)
    except (Exception, SystemExit):  # the environment must not end the evaluation
        return None


def _succeeds(family: TaskFamily, task: Task, seed: int, most: int | None) -> bool:
    assert isinstance(family, Teacher)
    actions = [action for _, action in family.demonstrate(task.copy(), seed, 0.0)][:most]
    environment = family.environment()
    try:
        begin(environment, task, seed)
        for action in actions:
            result = require_result(environment.step(action), "step(action)")
            if result.done:
                return result.success
        return False
    finally:
        environment.close()
