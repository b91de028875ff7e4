"""The policy on the frozen evaluation panels, measured the same way for every arm and iteration."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rlanything.core.types import Task
from rlanything.loop.rollout import Assignment, RolloutWorker, Sampling


def measure_policy(
    rollout_worker: RolloutWorker,
    tasks: Sequence[Task],
    run_seed: int,
    repeats: int,
    temperature: float,
    max_steps: int,
) -> dict[str, list[int]]:
    """Successes (1) and failures (0) per task id; crashed episodes are left out.

    The seeds depend only on the task and the run seed, so that two policies meet the same draws.
    """
    sampling = Sampling(run_seed, "panel", 0, temperature, max_steps)
    work = [Assignment(k, task, repeats) for k, task in enumerate(tasks)]
    results: dict[str, list[int]] = {task.task_id: [] for task in tasks}
    for trajectory in rollout_worker.roll_out(work, sampling):
        if trajectory.counts:
            results[trajectory.task_id].append(int(trajectory.outcome == 1))
    return results


def success_rate(results: Mapping[str, Sequence[int]]) -> float:
    """Mean over tasks of the mean over repeats. Tasks whose episodes all crashed are left out."""
    rates = [sum(r) / len(r) for r in results.values() if r]
    return sum(rates) / len(rates) if rates else float("nan")
