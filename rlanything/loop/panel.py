"""Frozen panels: how good the policy and the reward model are, measured the same way for every arm and iteration."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rlanything.core.records import trajectory_from_json, trajectory_to_json
from rlanything.core.signals import mean_vote
from rlanything.core.types import Json, Task, Trajectory
from rlanything.loop.judge import Judge
from rlanything.loop.rollout import Assignment, Roller, Sampling

Hits = tuple[int, int]
"""(hits, total)."""


@dataclass(frozen=True, slots=True)
class LabelledTrajectory:
    """A trajectory of the base policy with the oracle's label of every step (True: a good action)."""

    trajectory: Trajectory
    labels: tuple[bool, ...]

    def to_json(self) -> dict[str, Json]:
        """As a JSON record."""
        return {"labels": list(self.labels), "trajectory": trajectory_to_json(self.trajectory)}

    @classmethod
    def from_json(cls, data: Mapping[str, Json]) -> LabelledTrajectory:
        """Inverse of `to_json`."""
        return cls(trajectory_from_json(data["trajectory"]), tuple(data["labels"]))


@dataclass(frozen=True, slots=True)
class RewardScore:
    """How often the reward model was right about the steps of one task's trajectories."""

    good: Hits
    bad: Hits
    outcome: Hits


def measure_policy(
    roller: Roller, tasks: Sequence[Task], run_seed: int, repeats: int, temperature: float, max_steps: int
) -> dict[str, list[int]]:
    """Successes (1) and failures (0) per task id; crashed episodes are left out.

    The seeds depend on the task and the run seed alone, so that two policies meet the same draws.
    """
    sampling = Sampling(run_seed, "panel", 0, temperature, max_steps)
    work = [Assignment(k, task, repeats) for k, task in enumerate(tasks)]
    results: dict[str, list[int]] = {task.task_id: [] for task in tasks}
    for trajectory in roller.run(work, sampling):
        if trajectory.counts:
            results[trajectory.task_id].append(int(trajectory.outcome == 1))
    return results


def measure_reward(
    judge: Judge, panel: Sequence[LabelledTrajectory], run_seed: int
) -> dict[str, RewardScore]:
    """Per task id: steps judged rightly among the good ones, among the bad ones, and as the outcome has it.

    A step's verdict is the majority of its votes; one without a majority is wrong about everything.
    """
    judged = judge.run([item.trajectory for item in panel], run_seed, 0, phase="panel-judge")
    counts: dict[str, list[int]] = {}
    for item, judgements in zip(panel, judged, strict=True):
        tally = counts.setdefault(item.trajectory.task_id, [0] * 6)
        for label, judgement in zip(item.labels, judgements, strict=False):
            mean = mean_vote([v.verdict for v in judgement.votes])
            verdict = (mean > 0) - (mean < 0)
            kind = 0 if label else 2
            tally[kind] += verdict == (1 if label else -1)
            tally[kind + 1] += 1
            tally[4] += verdict == item.trajectory.outcome
            tally[5] += 1
    return {task_id: RewardScore((t[0], t[1]), (t[2], t[3]), (t[4], t[5])) for task_id, t in counts.items()}


def success_rate(results: Mapping[str, Sequence[int]]) -> float:
    """Mean over tasks of the mean over repeats; tasks whose every episode crashed are left out."""
    rates = [sum(r) / len(r) for r in results.values() if r]
    return sum(rates) / len(rates) if rates else float("nan")


def process_accuracy(scores: Mapping[str, RewardScore]) -> float:
    """Balanced accuracy against the oracle: mean of the accuracy on good and on bad steps."""
    return (_rate([s.good for s in scores.values()]) + _rate([s.bad for s in scores.values()])) / 2


def outcome_accuracy(scores: Mapping[str, RewardScore]) -> float:
    """Share of steps whose verdict equals the outcome of their episode."""
    return _rate([s.outcome for s in scores.values()])


def _rate(hits: Sequence[Hits]) -> float:
    total = sum(t for _, t in hits)
    return sum(h for h, _ in hits) / total if total else float("nan")
