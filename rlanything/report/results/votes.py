"""The votes on steps of stored rollouts, against what came of the episodes: by share of good votes, and by task.

Rollouts are large, so only those of the first and the last `RECENT` iterations of each run are read. A run without
stored rollouts (`train.save_rollouts: false`) has no entry.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pydantic import BaseModel, Field, ValidationError

from rlanything.buffer.views.find.runs import natural
from rlanything.core.records.forms import first_error
from rlanything.files.reader import FileError, TooLargeError, read_objects
from rlanything.report.results.curves import RECENT, TRAIN, Curves
from rlanything.report.results.evaluations import ReportError

LEVELS = ("none", "fewer than half", "half", "more than half", "all")
"""The groups that steps are put into: how many of their votes are good."""


class Vote(BaseModel):
    """One vote; null where the reply had no verdict."""

    verdict: int | None = Field(ge=-1, le=1)


class Judgement(BaseModel):
    """The votes on one step."""

    votes: list[Vote]


class Trajectory(BaseModel):
    """Which task, and what came of it."""

    task_id: str
    slot: int
    outcome: int
    status: str


class Stored(BaseModel):
    """One line of rollouts/iter_*.jsonl.gz; what else it holds is read elsewhere."""

    trajectory: Trajectory
    judgements: list[Judgement]


@dataclass
class Level:
    """Steps of one of the `LEVELS`. right: of them, those of a successful episode."""

    steps: int = 0
    right: int = 0


@dataclass
class TaskVotes:
    """One task of one run: its episodes, how many succeeded, and the sum of the mean votes on its steps.

    right: of the steps, those of a successful episode.
    """

    episodes: int = 0
    solved: int = 0
    steps: int = 0
    right: int = 0
    votes: float = 0.0

    @property
    def success(self) -> float:
        """Share of the episodes that succeeded."""
        return self.solved / self.episodes

    @property
    def vote(self) -> float:
        """Mean vote on a step, from -1 to 1."""
        return self.votes / self.steps

    @property
    def excess(self) -> float:
        """How far the mean vote is above that of a judge who repeats the outcome on every step, both from -1 to 1."""
        return self.vote - (2.0 * self.right / self.steps - 1.0)


@dataclass
class Window:
    """Some iterations of a run. levels: one for each of `LEVELS`. tasks: (slot, task id) -> its votes."""

    levels: list[Level] = field(default_factory=lambda: [Level() for _ in LEVELS])
    tasks: dict[tuple[int, str], TaskVotes] = field(default_factory=dict)

    def add(self, stored: Stored) -> None:
        """Count one episode. One that crashed, or that nobody judged, says nothing."""
        steps = [share for judgement in stored.judgements if (share := good_share(judgement)) is not None]
        trajectory = stored.trajectory
        if not steps or trajectory.status not in ("ok", "truncated"):
            return
        solved = int(trajectory.outcome == 1)
        for share in steps:
            level = self.levels[_level(share)]
            level.steps += 1
            level.right += solved
        task = self.tasks.setdefault((trajectory.slot, trajectory.task_id), TaskVotes())
        task.episodes += 1
        task.solved += solved
        task.steps += len(steps)
        task.right += solved * len(steps)
        task.votes += sum(2.0 * share - 1.0 for share in steps)


@dataclass(frozen=True)
class RunVotes:
    """One run at its start and at its end; they share iterations where it has fewer than twice `RECENT`."""

    start: Window
    end: Window


Votes = Mapping[str, Mapping[int, RunVotes]]
"""arm -> seed -> votes."""


def good_share(judgement: Judgement) -> float | None:
    """Share of the valid votes on a step that are good; None where none is valid."""
    valid = [vote.verdict for vote in judgement.votes if vote.verdict]
    return sum(verdict > 0 for verdict in valid) / len(valid) if valid else None


def _level(share: float) -> int:
    """Which of `LEVELS` a share of good votes belongs to."""
    if share in (0.0, 1.0):
        return 0 if share == 0.0 else len(LEVELS) - 1
    return 2 + (share > 0.5) - (share < 0.5)


def read_votes(root: Path, curves: Curves) -> dict[str, dict[int, RunVotes]]:
    """The votes of every run that has curves and stored rollouts. Raises `ReportError` for a file that is broken."""
    found = {
        arm: {seed: votes for seed in runs if (votes := _run(root, f"runs/{arm}/seed-{seed}/rollouts"))}
        for arm, runs in curves.items()
    }
    return {arm: runs for arm, runs in found.items() if any(run.end.tasks for run in runs.values())}


def _run(root: Path, folder: str) -> RunVotes | None:
    files = sorted((root / folder).glob("iter_*.jsonl.gz"), key=natural)
    files = [file for file in files if file.stat().st_size > EMPTY]
    return RunVotes(_window(files[:RECENT], root), _window(files[-RECENT:], root)) if files else None


EMPTY = 20
"""Bytes of a gzip file of nothing: the last iteration only measures and has no rollouts."""


def _window(files: Sequence[Path], root: Path) -> Window:
    window = Window()
    for file in files:
        for stored in _episodes(file, file.relative_to(root)):
            window.add(stored)
    return window


def _episodes(file: Path, name: Path) -> Iterator[Stored]:
    try:
        for number, record in enumerate(read_objects(file), start=1):
            try:
                yield Stored.model_validate(record)
            except ValidationError as error:
                raise ReportError(f"{name}, line {number}: {first_error(error)}; {AGAIN}") from None
    except TooLargeError as error:
        raise ReportError(str(error)) from None
    except FileError as error:
        raise ReportError(f"{name}: {error}; {AGAIN}") from None


AGAIN = f"make it again with `{TRAIN}`"


def levels(windows: Iterable[Window]) -> list[Level]:
    """The levels of several runs together."""
    rows = zip(*(window.levels for window in windows), strict=True)
    return [Level(sum(x.steps for x in row), sum(x.right for x in row)) for row in rows]
