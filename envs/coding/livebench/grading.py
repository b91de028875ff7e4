"""Grading a model's answers to LiveBench's coding questions. A score that is on disk is not asked for again."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from envs.coding.livebench.graders import Grader
from envs.coding.livebench.score_store import ScoreStore
from envs.coding.livebench.selection import Item
from rlanything.core.types import Json
from rlanything.files import atomic, locks

LOCK = ".grading.lock"
Progress = Callable[[str, int, int], None]
"""Called with (grader, answers graded, answers to grade)."""


@dataclass
class Grading:
    """The result of grading."""

    rows: list[dict[str, Json]] = field(default_factory=list)
    """The judgments, as LiveBench writes them."""
    failed: dict[tuple[str, str], str] = field(default_factory=dict)
    """By (grader, question): why there is no score."""
    again: set[str] = field(default_factory=set)
    """Questions that were graded although there was a score, because it may be of another answer or grader."""
    compared: int = 0
    different: list[str] = field(default_factory=list)
    lacking: dict[str, str] = field(default_factory=dict)
    """By question: packages of LiveBench's environment that a program did not find in our grader's box."""


def grade_items(
    items: Sequence[Item], model: str, data: Path, graders: Sequence[Grader], progress: Progress
) -> Grading:
    """Grade every answer without a score. The first grader's scores are the judgments; others are compared to them.

    Graders work one after the other: LiveBench limits a test by the clock. What could not be graded gets no judgment.
    Raises `LiveBenchError` where the judgments on disk were made by another grader, and `ConfigError` while another
    process grades into the same folder: all models' judgments of a task are in one file, which is written anew.
    """
    atomic.make(data)
    with locks.held(data / LOCK, f"{data}: another `rlanything livebench grade` writes there"):
        return _grade(items, model, data, graders, progress)


def _grade(
    items: Sequence[Item], model: str, data: Path, graders: Sequence[Grader], progress: Progress
) -> Grading:
    stores = {
        task: ScoreStore(data, task, model, graders[0]) for task in sorted({item.task for item in items})
    }
    grading, (judge, *others) = Grading(), graders
    _grade_missing(judge, items, stores, grading, progress)
    for store in stores.values():
        store.close()
    judged = [item for item in items if stores[item.task].grade(item, judge)]
    grading.rows = [stores[item.task].judgment(item) for item in judged]
    for other in others:
        _grade_missing(other, judged, stores, grading, progress)
        _compare(judge, other, judged, stores, grading)
    return grading


def _grade_missing(
    grader: Grader, items: Sequence[Item], stores: dict[str, ScoreStore], grading: Grading, progress: Progress
) -> None:
    """Have a grader grade what it has not graded, and keep each score at once."""
    todo = [item for item in items if stores[item.task].grade(item, grader) is None]
    grading.again |= {item.answer.question_id for item in todo if stores[item.task].graded(item, grader)}
    for done, (item, found) in enumerate(zip(todo, grader.grades(todo), strict=True), 1):
        if found.score is None:
            grading.failed[grader.name, item.answer.question_id] = found.error
            stores[item.task].lose(item, grader)
        else:
            stores[item.task].keep(item, grader, found.score, found.lacks)
        progress(grader.name, done, len(todo))
    for item in items:
        known = stores[item.task].grade(item, grader)
        if known and known.lacks:
            grading.lacking[item.answer.question_id] = known.lacks


def _compare(
    judge: Grader, other: Grader, items: Sequence[Item], stores: dict[str, ScoreStore], grading: Grading
) -> None:
    for item in items:
        store, name = stores[item.task], item.answer.question_id
        first, second = store.grade(item, judge), store.grade(item, other)
        if first and second:
            grading.compared += 1
            if first.score != second.score:
                grading.different.append(f"{name}: {judge.name} {first.score}, {other.name} {second.score}")
