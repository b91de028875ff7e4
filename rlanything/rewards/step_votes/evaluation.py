"""A voting reward model on the reward panel: trajectories of one policy with a label for every step."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isnan
from typing import Any

from rlanything.config import Config
from rlanything.core.protocols import TaskFamily, Teacher
from rlanything.core.signals import mean_vote
from rlanything.core.theory import precision
from rlanything.core.types import Json, Judgement, Task, Trajectory
from rlanything.rewards.panel import parsed
from rlanything.rewards.protocols import FirstModel, PanelLines
from rlanything.rewards.step_votes.judge import Judge
from rlanything.rewards.step_votes.labels import (
    LabelledTrajectory,
    label,
    label_by_votes,
    majority,
    unlabelled,
)

Hits = tuple[int, int]
"""(hits, total)."""


@dataclass(frozen=True, slots=True)
class RewardScore:
    """How often the reward model was right about the steps of one task.

    good, bad: on steps with this label. outcome: on all steps, where a step counts as good if its episode succeeded.
    """

    good: Hits
    bad: Hits
    outcome: Hits


class VoteEvaluation:
    """`PanelEvaluation` of a judge."""

    def __init__(self, config: Config, family: TaskFamily, judge: Judge) -> None:
        self.config = config
        self.family = family
        self.judge = judge

    def panel(self, tasks: Sequence[Task], trajectories: Sequence[Trajectory]) -> list[dict[str, Json]]:
        """The trajectories with the oracle's labels, or without labels where the family has no oracle."""
        family = self.family
        made = label(family, tasks, trajectories) if isinstance(family, Teacher) else unlabelled(trajectories)
        return [item.to_json() for item in made]

    def relabel(self, panel: PanelLines, run_seed: int) -> list[dict[str, Json]]:
        """The trajectories with the majority of this judge's votes."""
        trajectories = [item.trajectory for item in _read(panel)]
        return [item.to_json() for item in label_by_votes(self.judge, trajectories, run_seed)]

    def assess(self, panel: PanelLines) -> FirstModel:
        """Whether mu of its votes reaches `bootstrap.min_mu`."""
        metrics = self._precision(_read(panel))
        return FirstModel(metrics, too_imprecise(metrics["mu"], self.config.bootstrap.min_mu))

    def part(self, panel: PanelLines, tasks: int, rollouts: int) -> PanelLines:
        """The first `rollouts` trajectories of each of the first `tasks` tasks."""
        taken: Counter[str] = Counter()
        chosen = []
        for line, item in zip(panel, _read(panel), strict=True):
            task = item.trajectory.task_id
            if taken[task] < rollouts and (task in taken or len(taken) < tasks):
                taken[task] += 1
                chosen.append(line)
        return chosen

    def curve(self, panel: PanelLines, run_seed: int) -> dict[str, float]:
        """Accuracy against the outcomes and, where the panel has labels, against the labels."""
        read = _read(panel)
        judged = ask(self.judge, read, run_seed)
        scores = score(read, verdicts(judged))
        outcome = {"panel/rm_outcome": outcome_accuracy(scores)}
        if not any(s.good[1] or s.bad[1] for s in scores.values()):
            return outcome
        return {
            "panel/rm_process": process_accuracy(scores),
            "panel/rm_process_plain": plain_accuracy(scores),
            "panel/rm_pairwise": _rate(list(pairwise(read, judged).values())),
            **outcome,
        }

    def results(self, panels: Mapping[str, PanelLines], run_seed: int) -> dict[str, Any]:
        """Counts of steps and pairs judged rightly, by task. Where judges gave the labels, steps also for each judge.

        The steps are judged once, because the panels differ in labels only.
        """
        read = {name: _read(panel) for name, panel in panels.items()}
        labelled = next(iter(read.values()))
        judged = ask(self.judge, labelled, run_seed)
        scores = {name: score(items, verdicts(judged)) for name, items in read.items()}
        first = next(iter(scores.values()))
        found: dict[str, Any] = {
            "rm_process": _process(first),
            "rm_pairwise": {task: list(hits) for task, hits in pairwise(labelled, judged).items()},
            "rm_outcome": {task: list(s.outcome) for task, s in first.items()},
        }
        if self.config.evaluate.labels == "judge":
            found["labels"] = {
                name: {"rm_process": _process(scores[name]), "left_out": left_out(_read(panel))}
                for name, panel in panels.items()
            }
        return found

    def _precision(self, panel: Sequence[LabelledTrajectory]) -> dict[str, float]:
        """Precision of the votes (p+, p-, mu). With labels, also balanced accuracy and the share of good steps.

        The reward model is asked once: all these metrics are about the same votes.
        """
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
        found = {"p_plus": rates.p_plus, "p_minus": rates.p_minus, "mu": rates.mu}
        labels = [good for item in panel for good in item.labels if good is not None]
        if not labels:
            return found
        return {
            **found,
            "rm_process": process_accuracy(score(panel, verdicts(judged))),
            "good_steps": sum(labels) / len(labels),
        }


def too_imprecise(mu: float, least: float) -> str:
    """Why training must not start with a reward model whose p+ + p- is `mu`, or ''.

    mu: nan where it cannot be measured. least: `bootstrap.min_mu`; 0 asks for nothing.
    """
    if isnan(mu) and least:
        return (
            "mu of the first reward model cannot be measured: the panel has no success, or no failure, or all votes on "
            "one of them are unreadable. Raise the panel's tasks (tasks.panels) or evaluate.reward_rollouts, or start "
            "from a better policy."
        )
    if mu >= least or not least:
        return ""
    return (
        f"the first reward model has mu = {mu:.3f}, below bootstrap.min_mu = {least}: its votes would mislead the "
        "policy. Raise bootstrap.reward.episodes or bootstrap.reward.steps, or lower bootstrap.reward.noise."
    )


def ask(judge: Judge, panel: Sequence[LabelledTrajectory], run_seed: int) -> list[tuple[Judgement, ...]]:
    """For each trajectory, the votes on each step.

    A trajectory can have fewer judgements than steps: the judge was not asked about its last steps.
    """
    return judge.judge([item.trajectory for item in panel], run_seed, 0, phase="panel-judge")


def verdicts(judged: Sequence[Sequence[Judgement]]) -> list[list[int]]:
    """For each trajectory, the majority of the votes on each step: 1, -1, or 0 for none."""
    return [[majority(judgement) for judgement in judgements] for judgements in judged]


def score(panel: Sequence[LabelledTrajectory], said: Sequence[Sequence[int]]) -> dict[str, RewardScore]:
    """Per task id: steps judged rightly among the good ones, among the bad ones, and by the outcome.

    said: the `verdicts` on the panel. A step without a majority counts as judged wrongly. A step without a label counts
    for the outcome only. A step that the judge was not asked about does not count.
    """
    counts: dict[str, list[int]] = {}
    for item, steps in zip(panel, said, strict=True):
        tally = counts.setdefault(item.trajectory.task_id, [0] * 6)
        for good, verdict in zip(item.labels, steps, strict=False):
            tally[4] += verdict == item.trajectory.outcome
            tally[5] += 1
            if good is not None:
                kind = 0 if good else 2
                tally[kind] += verdict == (1 if good else -1)
                tally[kind + 1] += 1
    return {task_id: RewardScore((t[0], t[1]), (t[2], t[3]), (t[4], t[5])) for task_id, t in counts.items()}


def pairwise(panel: Sequence[LabelledTrajectory], judged: Sequence[Sequence[Judgement]]) -> dict[str, Hits]:
    """Per task id: how often a good step has a higher mean vote than a bad one. Counted in halves; a tie is one half.

    Pairs are steps of the same index in two trajectories of the task. The policy's advantages compare the same steps,
    so a shift of all votes changes neither. It changes process accuracy.
    """
    votes: dict[str, dict[int, tuple[list[float], list[float]]]] = {}
    for item, judgements in zip(panel, judged, strict=True):
        steps = votes.setdefault(item.trajectory.task_id, {})
        for index, (good, judgement) in enumerate(zip(item.labels, judgements, strict=False)):
            if good is not None:
                mean = mean_vote([vote.verdict for vote in judgement.votes])
                steps.setdefault(index, ([], []))[not good].append(mean)
    return {task: _preferred(list(steps.values())) for task, steps in votes.items()}


def _preferred(steps: Sequence[tuple[Sequence[float], Sequence[float]]]) -> Hits:
    """steps: for each index the mean votes on the good steps, and on the bad ones."""
    pairs = [(up, down) for good, bad in steps for up in good for down in bad]
    return sum((up > down) + (up >= down) for up, down in pairs), 2 * len(pairs)


def process_accuracy(scores: Mapping[str, RewardScore]) -> float:
    """Balanced accuracy against the labels: mean of the accuracy on good and on bad steps; nan if one is absent."""
    return (_rate([s.good for s in scores.values()]) + _rate([s.bad for s in scores.values()])) / 2


def plain_accuracy(scores: Mapping[str, RewardScore]) -> float:
    """Plain accuracy against the labels, as in the paper: share of the labelled steps judged rightly."""
    return _rate([hits for s in scores.values() for hits in (s.good, s.bad)])


def outcome_accuracy(scores: Mapping[str, RewardScore]) -> float:
    """Share of steps whose verdict equals the outcome of their episode."""
    return _rate([s.outcome for s in scores.values()])


def left_out(panel: Sequence[LabelledTrajectory]) -> dict[str, int]:
    """Reason why steps have no label -> how many such steps. `labelled`: how many steps have a label."""
    missing: Counter[str] = Counter()
    for item in panel:
        missing.update(item.left_out)
    labelled = sum(good is not None for item in panel for good in item.labels)
    return {"labelled": labelled, **{why: missing[why] for why in ("ties", "invalid", "unasked")}}


def _read(panel: PanelLines) -> list[LabelledTrajectory]:
    return parsed(panel, LabelledTrajectory.from_json)


def _process(scores: Mapping[str, RewardScore]) -> dict[str, dict[str, list[int]]]:
    return {task: {"good": list(s.good), "bad": list(s.bad)} for task, s in scores.items()}


def _rate(hits: Sequence[Hits]) -> float:
    total = sum(t for _, t in hits)
    return sum(h for h, _ in hits) / total if total else float("nan")
