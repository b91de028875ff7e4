"""The protocols of an exam: a benchmark whose questions, answers and judgments are files, such as LiveBench."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Protocol

from rlanything.core.types import Json


@dataclass(frozen=True, slots=True)
class Question:
    """A question of an exam.

    `task`: the part of the exam that the question belongs to; `text`: what the policy reads.
    """

    question_id: str
    task: str
    text: str


@dataclass(frozen=True)
class GradingOrder:
    """Which answers are graded, and how.

    questions, answers: files. model: its name in the judgments. release: the release date of the exam.
    folder: the folder that `Exam.setup` wrote. data: the folder that judgments are written to.
    grader: `livebench`, `ours` or `both`. workers: how many answers are graded at a time.
    ignore_missing: leave questions without an answer out of the scores. False: such a question is an error.
    sandbox: the settings `backend`, `image` and `trusted` of our own grader.
    """

    questions: Sequence[Path]
    answers: Sequence[Path]
    model: str
    release: date
    folder: Path
    data: Path
    grader: str
    workers: int
    ignore_missing: bool
    sandbox: Mapping[str, Json]


class Answers(Protocol):
    """The answers of one model on disk."""

    def missing(self, questions: Iterable[Question]) -> list[Question]:
        """The questions without an answer. Raises `UserError` where stored answers were made with other settings."""
        ...

    def keep(self, question: Question, text: str, tokens: int) -> None:
        """Store the answer to a question. tokens: the length of the answer."""
        ...


class Exam(Protocol):
    """Questions, files of answers, and graders."""

    def questions(self, files: Sequence[Path], release: date | None) -> list[Question]:
        """The questions of a release in the order of the files; None: the latest release. Raises `UserError`."""
        ...

    def answers(self, data: Path, model: str, made: Mapping[str, Json]) -> Answers:
        """A model's answers below `data`; `made`: the settings that they depend on.

        Raises `UserError` for an unusable name.
        """
        ...

    def setup(self, repository: Path, folder: Path) -> None:
        """Install the exam's own grader, from a clone of its repository, into `folder`. Raises `UserError`."""
        ...

    def grade(self, order: GradingOrder) -> int:
        """Grade answers, write judgments and print scores.

        Returns the exit code: 2 when some answers were not graded.
        """
        ...
