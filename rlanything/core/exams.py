"""Exams: what an environment offers that brings questions from outside, keeps answers in files and grades them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Protocol

from rlanything.core.types import Json


@dataclass(frozen=True, slots=True)
class Question:
    """A question. `task`: the part of the exam that it belongs to; `text`: what the policy reads."""

    question_id: str
    task: str
    text: str


@dataclass(frozen=True)
class GradingOrder:
    """What is to be graded, and how.

    questions, answers: files. model: the name in the judgments. release: of the exam.
    folder: what `Exam.setup` made. data: where judgments go.
    grader: `livebench`, `ours` or `both`. workers: answers graded at a time.
    ignore_missing: questions without an answer are left out of the scores; otherwise they are an error.
    sandbox: `backend`, `image` and `trusted` of our grader.
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
        """The questions without an answer. Raises `UserError` where the answers there were made by something else."""
        ...

    def keep(self, question: Question, text: str, tokens: int) -> None:
        """Write an answer of so many tokens."""
        ...


class Exam(Protocol):
    """Questions, files of answers, and graders."""

    def questions(self, files: Sequence[Path], release: date | None) -> list[Question]:
        """The questions of a release in the order of the files; None: of the latest one. Raises `UserError`."""
        ...

    def answers(self, data: Path, model: str, made: Mapping[str, Json]) -> Answers:
        """A model's answers below `data`; `made`: what they depend on. Raises `UserError` for an unusable name."""
        ...

    def setup(self, repository: Path, folder: Path) -> None:
        """Install the exam's own grader, from a clone of its repository, into `folder`. Raises `UserError`."""
        ...

    def grade(self, order: GradingOrder) -> int:
        """Grade answers, write judgments, print scores; the exit code: 2 when some answers were not graded."""
        ...
