"""Labels of steps, against which a voting reward model is measured. The environment's oracle or a judge gives them.

The paper measures process accuracy against the majority of a stronger judge's votes (8 of them; its Table 3).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NotRequired

from typing_extensions import TypedDict

from rlanything.core.protocols import Teacher
from rlanything.core.records.forms import Count, Form, require_equal
from rlanything.core.records.rollouts import TrajectoryForm, trajectory_from_json, trajectory_to_json
from rlanything.core.types import Json, Judgement, Task, Trajectory
from rlanything.rewards.requirements import step_labels
from rlanything.rewards.step_votes.judge import Judge

Label = bool | None
"""True: a good action. None: no label, so that the step does not count for process accuracy."""


class _Record(TypedDict):
    trajectory: TrajectoryForm
    labels: list[Label]
    left_out: NotRequired[dict[str, Count]]


_RECORD = Form(_Record)


@dataclass(frozen=True, slots=True)
class LabelledTrajectory:
    """A trajectory with a label for every step.

    left_out: reason why steps have no label -> how many such steps. `ties`: as many votes for as against; `invalid`: no
    vote has a verdict; `unasked`: the judge was not asked, because the trajectory crashed or the question does not fit
    its context; `no oracle`: the environment has no oracle, and no judge has labelled the step.
    """

    trajectory: Trajectory
    labels: tuple[Label, ...]
    left_out: Mapping[str, int] = field(default_factory=dict)

    def to_json(self) -> dict[str, Json]:
        """As a JSON record."""
        counted = {"left_out": dict(self.left_out)} if self.left_out else {}
        return {"labels": list(self.labels), **counted, "trajectory": trajectory_to_json(self.trajectory)}

    @classmethod
    def from_json(cls, data: Mapping[str, Json]) -> LabelledTrajectory:
        """Inverse of `to_json`. Raises `ValueError` for a record of another form."""
        _RECORD.check(data)
        trajectory = trajectory_from_json(data["trajectory"])
        require_equal("labels", len(data["labels"]), "steps", len(trajectory.steps))
        return cls(trajectory, tuple(data["labels"]), data.get("left_out", {}))


def label(
    oracle: Teacher, tasks: Sequence[Task], trajectories: Sequence[Trajectory]
) -> list[LabelledTrajectory]:
    """The trajectories, with the oracle's label of every step."""
    by_id = {task.task_id: task for task in tasks}
    return [
        LabelledTrajectory(t, tuple(step_labels(oracle, by_id[t.task_id], [s.action for s in t.steps])))
        for t in trajectories
    ]


def unlabelled(trajectories: Sequence[Trajectory]) -> list[LabelledTrajectory]:
    """The trajectories without labels, for an environment without an oracle. Judges label them later."""
    return [LabelledTrajectory(t, (None,) * len(t.steps), {"no oracle": len(t.steps)}) for t in trajectories]


def label_by_votes(
    judge: Judge, trajectories: Sequence[Trajectory], run_seed: int
) -> list[LabelledTrajectory]:
    """The trajectories, with the majority of the judge's votes on every step."""
    judged = judge.judge(trajectories, run_seed, 0, phase="label")
    return [_labelled(t, judgements) for t, judgements in zip(trajectories, judged, strict=True)]


def majority(judgement: Judgement) -> int:
    """The majority of the valid votes, 1 or -1; 0 for a tie, and where no vote has a verdict."""
    total = sum(vote.verdict or 0 for vote in judgement.votes)
    return (total > 0) - (total < 0)


def _labelled(trajectory: Trajectory, judgements: Sequence[Judgement]) -> LabelledTrajectory:
    found = [majority(judgement) for judgement in judgements]
    unasked = len(trajectory.steps) - len(found)
    labels = [verdict == 1 if verdict else None for verdict in found] + [None] * unasked
    missing = Counter(_why(j) for j, verdict in zip(judgements, found, strict=True) if not verdict)
    missing["unasked"] = unasked
    return LabelledTrajectory(trajectory, tuple(labels), {why: n for why, n in sorted(missing.items()) if n})


def _why(judgement: Judgement) -> str:
    """Why the votes on a step have no majority."""
    return "ties" if any(vote.verdict is not None for vote in judgement.votes) else "invalid"
