"""The policy on the frozen evaluation panels, measured the same way for every arm and iteration."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rlanything.core.protocols import JudgesAtLimit, TaskFamily
from rlanything.core.types import Task, Trajectory
from rlanything.loop.rollout import Assignment, RolloutWorker, Sampling


def play_panel(
    rollout_worker: RolloutWorker,
    tasks: Sequence[Task],
    run_seed: int,
    repeats: int,
    temperature: float,
    max_steps: int,
) -> list[Trajectory]:
    """The policy's episodes on the panel. Those that crashed are among them (`Trajectory.counts`).

    The seeds depend only on the run seed, the task, the repeat and the step, so that all policies get the same random
    draws.
    """
    sampling = Sampling(run_seed, "panel", 0, temperature, max_steps)
    work = [Assignment(k, task, repeats) for k, task in enumerate(tasks)]
    return rollout_worker.roll_out(work, sampling)


def successes(
    tasks: Sequence[Task], played: Sequence[Trajectory], within: int | None = None
) -> dict[str, list[int]]:
    """Successes (1) and failures (0) per task id; crashed episodes are left out.

    within: a limit of steps; a longer episode is a failure.
    """
    results: dict[str, list[int]] = {task.task_id: [] for task in tasks}
    for t in _counting(played):
        results[t.task_id].append(int(t.outcome == 1 and (within is None or len(t.steps) <= within)))
    return results


def lengths(tasks: Sequence[Task], played: Sequence[Trajectory]) -> dict[str, list[int]]:
    """Steps of every episode per task id, in the order of `successes`."""
    results: dict[str, list[int]] = {task.task_id: [] for task in tasks}
    for trajectory in _counting(played):
        results[trajectory.task_id].append(len(trajectory.steps))
    return results


def _counting(played: Sequence[Trajectory]) -> list[Trajectory]:
    return [trajectory for trajectory in played if trajectory.counts]


def success_within(
    tasks: Sequence[Task], played: Sequence[Trajectory], max_steps: int, family: TaskFamily
) -> list[float | None]:
    """The success rate that a limit of 1, 2, ... `max_steps` steps would give (Fig. 6b); None where all crashed.

    The policy does not see the limit. So one evaluation gives the rates for all limits up to its own. A family that
    judges what an episode has reached at the limit would judge earlier with a lower one: None below its own limit.
    """
    lowest = max_steps if isinstance(family, JudgesAtLimit) else 1
    rates = [success_rate(successes(tasks, played, k)) for k in range(lowest, max_steps + 1)]
    return [None] * (lowest - 1) + [rate if rate == rate else None for rate in rates]


def success_rate(results: Mapping[str, Sequence[int]]) -> float:
    """Mean over tasks of the mean over repeats. Tasks whose episodes all crashed are left out."""
    rates = [sum(r) / len(r) for r in results.values() if r]
    return sum(rates) / len(rates) if rates else float("nan")
