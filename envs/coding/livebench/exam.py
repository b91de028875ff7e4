"""LiveBench behind the command `rlanything livebench`: questions, answers, setup, grading, printed scores."""

from __future__ import annotations

import platform
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from datetime import date
from pathlib import Path
from typing import Any

from envs.coding.formats.record import FormatError
from envs.coding.livebench import install
from envs.coding.livebench.answers import AnswerFiles, questions_of, require_name
from envs.coding.livebench.graders import Grader, LiveBenchGrader, SandboxGrader
from envs.coding.livebench.grading import Grading, grade_items
from envs.coding.livebench.install import Installation, LiveBenchError
from envs.coding.livebench.judgments import mean_score, read_answers
from envs.coding.livebench.selection import Item, require_once, select
from envs.coding.sandbox import BACKENDS, Limits, open_sandbox
from envs.settings import one_of
from rlanything.core.exams import GradingOrder, Question
from rlanything.core.printable import safe, safe_lines
from rlanything.core.types import Json

MEMORY_MB = 4096
SHOWS_PACKAGES = "bwrap"
"""The back end that shows programs a folder of packages; an image has its own."""


class LiveBench:
    """Implements `core.exams.Exam`."""

    def questions(self, files: Sequence[Path], release: date | None) -> list[Question]:
        """See `Exam`. Raises `FormatError`."""
        return questions_of(files, release)

    def answers(self, data: Path, model: str, made: Mapping[str, Json]) -> AnswerFiles:
        """See `Exam`. Raises `LiveBenchError`."""
        return AnswerFiles(data, model, made)

    def setup(self, repository: Path, folder: Path) -> None:
        """See `Exam`. Raises `LiveBenchError`."""
        made = install.setup(repository, folder)
        changed = ", with changes" if made.changed else ""
        print(
            f"LiveBench at commit {made.commit[:12]}{changed}, Python {made.version}, {len(made.packages)} packages"
        )
        print(f"recorded in {folder / install.RECORD}")

    def grade(self, order: GradingOrder) -> int:
        """See `Exam`. Raises `FormatError`, `LiveBenchError` and, where our grader cannot run, `SandboxError`."""
        require_name(order.model)
        installed = _installed(order)
        items, missing = _selected(order)
        if missing and not order.ignore_missing:
            raise FormatError(
                f"{len(missing)} questions of release {order.release} have no answer, the first {missing[0]!r}; "
                "--ignore-missing-answers leaves them out of the scores"
            )
        with ExitStack() as stack:
            graders: list[Grader] = []
            if order.grader != SandboxGrader.name and installed is not None:
                graders.append(LiveBenchGrader(installed, order.workers))
            if order.grader != LiveBenchGrader.name:
                graders.append(_sandbox_grader(stack, order, installed))
            grading = grade_items(items, order.model, order.data, graders, _progress())
        _print_scores(grading, f"{order.model}  release {order.release}")
        _print_notes(grading)
        if missing:
            print(safe(f"without an answer, and in no score: {', '.join(missing)} ({len(missing)} in all)"))
        return 2 if grading.failed else 0


def _installed(order: GradingOrder) -> Installation | None:
    """LiveBench as it was set up; None where it was not and only our grader is asked for."""
    if order.grader != SandboxGrader.name:
        return install.read(order.folder)
    return install.recorded(order.folder) if (order.folder / install.RECORD).is_file() else None


def _selected(order: GradingOrder) -> tuple[list[Item], list[str]]:
    given = {name: answer for path in order.answers for name, answer in read_answers(path).items()}
    chosen = [select(path, given, order.release) for path in order.questions]
    items = [item for found, _ in chosen for item in found]
    missing = [name for _, absent in chosen for name in absent]
    require_once([*(str(item.problem.source["id"]) for item in items), *missing])
    return items, missing


def _sandbox_grader(stack: ExitStack, order: GradingOrder, installed: Installation | None) -> SandboxGrader:
    """Our grader. Where its boxes can show them, programs have the packages of LiveBench's environment.

    Raises `LiveBenchError` for an unknown back end and where the packages are another interpreter's.
    """
    options: Mapping[str, Any] = order.sandbox
    try:
        backend = one_of("--backend", options["backend"], BACKENDS)
    except ValueError as error:
        raise LiveBenchError(str(error)) from None
    shown = installed if backend == SHOWS_PACKAGES else None
    packages = None if shown is None else shown.importable()
    made = {
        "backend": backend,
        **({"image": options["image"]} if backend == "docker" else {"python": platform.python_version()}),
        "packages": shown.packages if shown else {},
    }
    limits = Limits(memory_mb=MEMORY_MB)
    opened = open_sandbox(**options, workers=order.workers, limits=limits, packages=packages)
    return SandboxGrader(stack.enter_context(opened), order.workers, made)


def _print_scores(grading: Grading, head: str) -> None:
    tasks = sorted({row["task"] for row in grading.rows})
    means = {task: mean_score([row for row in grading.rows if row["task"] == task]) for task in tasks}
    for task, mean in means.items():
        count = sum(row["task"] == task for row in grading.rows)
        print(f"{head}  {task}: {mean:.1f} of 100 ({count} answers)")
    if means:
        print(f"{head}  coding: {sum(means.values()) / len(means):.1f} of 100")


def _print_notes(grading: Grading) -> None:
    if grading.again:
        print(f"graded again: {len(grading.again)} answers; the scores there may be of other answers")
    if grading.compared:
        same = grading.compared - len(grading.different)
        print(f"graders: {same} of {grading.compared} scores are the same")
    for line in grading.different:
        print(safe(f"  {line}"))
    if grading.lacking:
        missing = "; ".join(f"{name} ({packages})" for name, packages in grading.lacking.items())
        print(
            safe(f"our grader's box lacks packages of LiveBench's environment that these import: {missing}")
        )
    for (grader, name), error in grading.failed.items():
        print(safe_lines(f"not graded by {grader}: {name}: {error}"), file=sys.stderr)


def _progress() -> Callable[[str, int, int], None]:
    """Prints a line that is written over on a terminal, and every tenth answer elsewhere."""
    terminal = sys.stderr.isatty()

    def show(grader: str, done: int, total: int) -> None:
        if terminal or done % 10 == 0 or done == total:
            end = "\r" if terminal and done < total else "\n"
            print(f"{grader}: {done} of {total}", end=end, file=sys.stderr)

    return show
