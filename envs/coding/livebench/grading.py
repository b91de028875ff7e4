"""Grading a model's answers to LiveBench's coding questions: what is not known is asked, what is given is kept."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from envs.coding.livebench.book import Book
from envs.coding.livebench.graders import Grader
from envs.coding.livebench.selection import Item
from rlanything.core.types import Json

Progress = Callable[[str, int, int], None]
"""Told (grader, answers graded, answers to grade)."""


@dataclass
class Outcome:
    """What grading gave."""

    rows: list[dict[str, Json]] = field(default_factory=list)
    """The judgments, as LiveBench writes them."""
    failed: dict[tuple[str, str], str] = field(default_factory=dict)
    """By (grader, question): why there is no score."""
    again: set[str] = field(default_factory=set)
    """Questions that had a score of something else, or of what is not known."""
    compared: int = 0
    different: list[str] = field(default_factory=list)
    lacking: dict[str, str] = field(default_factory=dict)
    """By question: packages that a program asked our grader for, which LiveBench's environment has."""


def grade(
    items: Sequence[Item], model: str, data: Path, graders: Sequence[Grader], progress: Progress
) -> Outcome:
    """Have every answer graded that has no score yet: the first grader's become the judgments, others' are compared.

    Graders work one after the other: LiveBench limits a test by the clock. What could not be graded gets no judgment.
    Raises `LiveBenchError` where the judgments on disk were made by another grader.
    """
    books = {task: Book(data, task, model, graders[0]) for task in sorted({item.task for item in items})}
    outcome, (judge, *others) = Outcome(), graders
    _ask(judge, items, books, outcome, progress)
    for book in books.values():
        book.close()
    judged = [item for item in items if books[item.task].grade(item, judge)]
    outcome.rows = [books[item.task].judgment(item) for item in judged]
    for other in others:
        _ask(other, judged, books, outcome, progress)
        _compare(judge, other, judged, books, outcome)
    return outcome


def _ask(
    grader: Grader, items: Sequence[Item], books: dict[str, Book], outcome: Outcome, progress: Progress
) -> None:
    """Keep a grader's score of every answer that it has not graded, as soon as it gives it."""
    todo = [item for item in items if books[item.task].grade(item, grader) is None]
    outcome.again |= {item.answer.question_id for item in todo if books[item.task].graded(item, grader)}
    for done, (item, found) in enumerate(zip(todo, grader.grades(todo), strict=True), 1):
        if found.score is None:
            outcome.failed[grader.name, item.answer.question_id] = found.error
            books[item.task].lose(item, grader)
        else:
            books[item.task].keep(item, grader, found.score, found.lacks)
        progress(grader.name, done, len(todo))
    for item in items:
        known = books[item.task].grade(item, grader)
        if known and known.lacks:
            outcome.lacking[item.answer.question_id] = known.lacks


def _compare(
    judge: Grader, other: Grader, items: Sequence[Item], books: dict[str, Book], outcome: Outcome
) -> None:
    for item in items:
        book, name = books[item.task], item.answer.question_id
        first, second = book.grade(item, judge), book.grade(item, other)
        if first and second:
            outcome.compared += 1
            if first.score != second.score:
                outcome.different.append(f"{name}: {judge.name} {first.score}, {other.name} {second.score}")
