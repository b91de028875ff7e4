"""A voting reward model on the reward panel: trajectories of the base policy with the oracle's label of every step."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rlanything.config import Config
from rlanything.core.records import trajectory_from_json, trajectory_to_json
from rlanything.core.signals import mean_vote
from rlanything.core.theory import precision
from rlanything.core.types import Json, Task, TaskFamily, Teacher, Trajectory
from rlanything.rewards.families import teacher
from rlanything.rewards.protocols import PanelLines, RewardPanel
from rlanything.rewards.step_votes.judge import Judge

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
    """How often the reward model was right about one task's steps: good ones, bad ones, and by the outcome."""

    good: Hits
    bad: Hits
    outcome: Hits


class VoteEvaluation:
    """`PanelEvaluation` of a judge."""

    def __init__(self, config: Config, family: TaskFamily, judge: Judge) -> None:
        self.config = config
        self.family = family
        self.judge = judge

    def make(self, tasks: Sequence[Task], trajectories: Sequence[Trajectory]) -> RewardPanel:
        """The labelled trajectories. Raises `ConfigError` for a family without an oracle."""
        panel = label(teacher(self.family), tasks, trajectories)
        metrics, least = self._precision(panel), self.config.bootstrap.min_mu
        objection = (
            f"the first reward model has mu = {metrics['mu']:.3f}, below bootstrap.min_mu = {least}: its votes would "
            "mislead the policy. Raise bootstrap.reward.episodes or bootstrap.reward.steps, or lower "
            "bootstrap.reward.noise."
        )
        return RewardPanel([p.to_json() for p in panel], metrics, objection if metrics["mu"] < least else "")

    def curve(self, panel: PanelLines, run_seed: int) -> dict[str, float]:
        """Agreement with the oracle, and with the outcomes."""
        scores = self._scores(panel, run_seed)
        return {"panel/rm_process": process_accuracy(scores), "panel/rm_outcome": outcome_accuracy(scores)}

    def results(self, panel: PanelLines, run_seed: int) -> dict[str, Any]:
        """Steps judged rightly, by task."""
        scores = self._scores(panel, run_seed)
        return {
            "rm_process": {task: {"good": list(s.good), "bad": list(s.bad)} for task, s in scores.items()},
            "rm_outcome": {task: list(s.outcome) for task, s in scores.items()},
        }

    def _scores(self, panel: PanelLines, run_seed: int) -> dict[str, RewardScore]:
        return measure_reward(self.judge, [LabelledTrajectory.from_json(line) for line in panel], run_seed)

    def _precision(self, panel: Sequence[LabelledTrajectory]) -> dict[str, float]:
        """Precision of the votes (p+, p-, mu), agreement with the labels, and the share of good steps."""
        trajectories = [item.trajectory for item in panel]
        judged = self.judge.judge(trajectories, self.config.seed, 0, phase="bootstrap-mu")
        rates = precision(
            [
                (trajectory.outcome, vote.verdict)
                for trajectory, judgements in zip(trajectories, judged, strict=True)
                for judgement in judgements
                for vote in judgement.votes
                if vote.verdict is not None
            ]
        )
        return {
            "p_plus": rates.p_plus,
            "p_minus": rates.p_minus,
            "mu": rates.mu,
            "rm_process": process_accuracy(measure_reward(self.judge, panel, self.config.seed)),
            "good_steps": mean_vote([1 if good else -1 for item in panel for good in item.labels]) / 2 + 0.5,
        }


def label(
    oracle: Teacher, tasks: Sequence[Task], trajectories: Sequence[Trajectory]
) -> list[LabelledTrajectory]:
    """The trajectories, with the oracle's label of every step."""
    by_id = {task.task_id: task for task in tasks}
    return [
        LabelledTrajectory(t, tuple(oracle.label_steps(by_id[t.task_id], [s.action for s in t.steps])))
        for t in trajectories
    ]


def measure_reward(
    judge: Judge, panel: Sequence[LabelledTrajectory], run_seed: int
) -> dict[str, RewardScore]:
    """Per task id: steps judged rightly among the good ones, among the bad ones, and by the outcome.

    A step's verdict is the majority of its votes. A step without a majority is judged wrongly in every respect.
    """
    judged = judge.judge([item.trajectory for item in panel], run_seed, 0, phase="panel-judge")
    counts: dict[str, list[int]] = {}
    for item, judgements in zip(panel, judged, strict=True):
        tally = counts.setdefault(item.trajectory.task_id, [0] * 6)
        for good, judgement in zip(item.labels, judgements, strict=False):
            mean = mean_vote([v.verdict for v in judgement.votes])
            verdict = (mean > 0) - (mean < 0)
            kind = 0 if good else 2
            tally[kind] += verdict == (1 if good else -1)
            tally[kind + 1] += 1
            tally[4] += verdict == item.trajectory.outcome
            tally[5] += 1
    return {task_id: RewardScore((t[0], t[1]), (t[2], t[3]), (t[4], t[5])) for task_id, t in counts.items()}


def process_accuracy(scores: Mapping[str, RewardScore]) -> float:
    """Balanced accuracy against the oracle: mean of the accuracy on good and on bad steps."""
    return (_rate([s.good for s in scores.values()]) + _rate([s.bad for s in scores.values()])) / 2


def outcome_accuracy(scores: Mapping[str, RewardScore]) -> float:
    """Share of steps whose verdict equals the outcome of their episode."""
    return _rate([s.outcome for s in scores.values()])


def _rate(hits: Sequence[Hits]) -> float:
    total = sum(t for _, t in hits)
    return sum(h for h, _ in hits) / total if total else float("nan")
