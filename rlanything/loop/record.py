"""What a run stores of an iteration's episodes: every token, every vote and the advantages.

One line for each episode (format: docs/results.md). The advantages are stored together with the data that they were
computed from, so that a replay can check them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from math import isfinite

from typing_extensions import TypedDict

from rlanything.core.errors import ConfigError
from rlanything.core.records.forms import Form, Number, require_equal
from rlanything.core.records.rollouts import (
    JudgementForm,
    LessonForm,
    TrajectoryForm,
    judgements_from_json,
    judgements_to_json,
    lesson_from_json,
    lesson_to_json,
    trajectory_from_json,
    trajectory_to_json,
)
from rlanything.core.types import Episode, Json
from rlanything.loop.group import Group


class _Lessons(TypedDict):
    policy: list[Number] | None
    reward: list[LessonForm | None]


class _Record(TypedDict):
    proposal: bool
    trains: bool
    trajectory: TrajectoryForm
    judgements: list[JudgementForm]
    lesson: _Lessons


_RECORD = Form(_Record)


class NotStored(ConfigError):
    """A replay asks for something that did not happen in the run."""


@dataclass(frozen=True)
class EpisodeRecord:
    """One stored line. proposal: the episode is of a rewrite. trains: the same as in its `Group`."""

    proposal: bool
    trains: bool
    episode: Episode

    def to_json(self) -> dict[str, Json]:
        """As a JSON object."""
        episode = self.episode
        lessons = episode.lessons or (None,) * len(episode.judgements)
        return {
            "proposal": self.proposal,
            "trains": self.trains,
            "trajectory": trajectory_to_json(episode.trajectory),
            "judgements": judgements_to_json(episode.judgements),
            "lesson": {
                "policy": None if episode.advantages is None else list(episode.advantages),
                "reward": [lesson_to_json(lesson) for lesson in lessons],
            },
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Json]) -> EpisodeRecord:
        """Inverse of `to_json`. Raises `ValueError` for a record of another form."""
        _RECORD.check(data)
        advantages = data["lesson"]["policy"]
        lessons = tuple(map(lesson_from_json, data["lesson"]["reward"]))
        episode = Episode(
            trajectory_from_json(data["trajectory"]),
            judgements_from_json(data["judgements"]),
            None if advantages is None else tuple(advantages),
            lessons if any(lessons) else (),
        )
        _require_whole(episode, len(lessons))
        return cls(data["proposal"], data["trains"], episode)


def _require_whole(episode: Episode, lessons: int) -> None:
    """Raise `ValueError` unless the parts of an episode belong together."""
    steps, judged = len(episode.trajectory.steps), len(episode.judgements)
    if judged > steps:
        raise ValueError(f"{judged} judgements for {steps} steps")
    require_equal("lessons", lessons, "judgements", judged)
    for judgement, lesson in zip(episode.judgements, episode.lessons, strict=False):
        if lesson is not None:
            require_equal("advantages", len(lesson.advantages), "votes", len(judgement.votes))
    if episode.advantages is not None:
        require_equal("advantages", len(episode.advantages), "steps", steps)


def episode_records(groups: Iterable[Group]) -> Iterator[dict[str, Json]]:
    """One JSON record an episode, in the order of the groups."""
    for group in groups:
        for episode in group.episodes:
            yield EpisodeRecord(group.proposal is not None, group.trains, episode).to_json()


def metrics_record(metrics: Mapping[str, float]) -> dict[str, Json]:
    """Metrics by name, sorted. Nan and infinity, which JSON lacks, become null."""
    return {key: value if isfinite(value) else None for key, value in sorted(metrics.items())}
