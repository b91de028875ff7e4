"""The questions of a release, and the answers to them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import date
from pathlib import Path

from envs.coding.formats import livebench
from envs.coding.formats.files import load
from envs.coding.formats.record import FormatError
from envs.coding.livebench.judgments import Answer
from envs.coding.problem import Problem

LATEST = date.max
"""After every release."""


@dataclass(frozen=True, slots=True)
class Item:
    """A question with the answer to it."""

    problem: Problem
    answer: Answer

    @property
    def task(self) -> str:
        """LiveBench's name of the task."""
        return str(self.problem.source["task"])


def select(questions: Path, answers: Mapping[str, Answer], release: date) -> tuple[list[Item], list[str]]:
    """(questions of the release with their answers, questions of it without one). Raises `FormatError`."""
    problems = asked(questions, release)
    items = [Item(p, answers[p.source["id"]]) for p in problems if p.source["id"] in answers]
    return items, [str(p.source["id"]) for p in problems if p.source["id"] not in answers]


def require_once(names: Iterable[str]) -> None:
    """Raise `FormatError` for a question that stands in two files: its score would count twice."""
    for name, count in Counter(names).items():
        if count > 1:
            raise FormatError(f"question {name!r} stands in two of the files")


def asked(questions: Path, release: date) -> list[Problem]:
    """The questions in a file that a release asks; `LATEST` stands for all that were not removed.

    Raises `FormatError` for a bad file, and where there are none.
    """
    problems, _ = load(questions, livebench.NAME)
    found = [problem for problem in problems if livebench.in_release(problem, release)]
    if not found:
        raise FormatError(f"{questions}: no question belongs to release {release}")
    return found
