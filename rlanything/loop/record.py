"""What a run stores of an iteration: every token, every vote or test, and what each of them taught.

A line is an episode, or the tests of a task (format: docs/results.md). The advantages are stored beside what they were
computed from, so that a replay can prove that they follow from it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from math import isfinite

from rlanything.core.records import (
    judgements_from_json,
    judgements_to_json,
    trajectory_from_json,
    trajectory_to_json,
)
from rlanything.core.types import Json, Judgement, ScoredJudgements, Trajectory
from rlanything.loop.iteration import Harvest
from rlanything.loop.testwriter import Examined


@dataclass(frozen=True)
class Episode:
    """One stored line. `proposal`: the episode decided about a rewrite. `lesson`: its advantages, as stored."""

    proposal: bool
    trains: bool
    trajectory: Trajectory
    judgements: tuple[Judgement, ...]
    lesson: Mapping[str, Json]

    @classmethod
    def from_json(cls, data: Mapping[str, Json]) -> Episode:
        """The episode of a stored line. Raises `KeyError`, `TypeError` or `ValueError` for a record that is none."""
        return cls(
            data["proposal"],
            data["trains"],
            trajectory_from_json(data["trajectory"]),
            judgements_from_json(data["judgements"]),
            data["lesson"],
        )


def episode_records(harvest: Harvest) -> Iterator[dict[str, Json]]:
    """One JSON record an episode, in the order of the groups."""
    policy = {id(lesson.trajectory): lesson.advantages for lesson in harvest.policy}
    reward = _vote_lessons(harvest.reward)
    for group in harvest.groups:
        judged = group.judgements or [()] * len(group.trajectories)
        for trajectory, judgements in zip(group.trajectories, judged, strict=True):
            advantages = policy.get(id(trajectory))
            yield {
                "proposal": group.proposal is not None,
                "trains": group.trains,
                "trajectory": trajectory_to_json(trajectory),
                "judgements": judgements_to_json(judgements),
                "lesson": {
                    "policy": None if advantages is None else list(advantages),
                    "reward": [reward.get(id(judgement)) for judgement in judgements],
                },
            }


@dataclass(frozen=True)
class WrittenTests:
    """One stored line of tests: those of a task, and what they and the task's programs did."""

    slot: int
    task_id: str
    examined: Examined

    @classmethod
    def from_json(cls, data: Mapping[str, Json]) -> WrittenTests:
        """The tests of a stored line. Raises `KeyError`, `TypeError` or `ValueError` for a record that is none."""
        return cls(data["slot"], data["task_id"], Examined.from_json(data["examined"]))


def unit_test_records(harvest: Harvest) -> Iterator[dict[str, Json]]:
    """One JSON record a task whose reward model writes tests, in the order of the groups; none for step votes."""
    reward = _vote_lessons(harvest.reward)
    for group in harvest.groups:
        if group.examined is not None:
            yield {
                "slot": group.slot,
                "task_id": group.task.task_id,
                "proposal": group.proposal is not None,
                "trains": group.trains,
                "examined": group.examined.to_json(),
                "lesson": reward.get(id(group.examined.judgement)),
            }


def metrics_record(metrics: Mapping[str, float]) -> dict[str, Json]:
    """A row of metrics by name. JSON has neither nan nor infinity: what was not measured, or has no bound, is null."""
    return {key: value if isfinite(value) else None for key, value in sorted(metrics.items())}


def _vote_lessons(lessons: Iterable[ScoredJudgements]) -> dict[int, Json]:
    """What each judgement teaches, by the identity of the judgement: equal ones of two episodes are two lessons."""
    return {
        id(judgement): {"advantages": list(advantages), "weight": weight}
        for lesson in lessons
        for judgement, advantages, weight in zip(
            lesson.judgements, lesson.advantages, lesson.weights, strict=True
        )
    }
