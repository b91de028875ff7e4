"""The commands `rlanything livebench setup` and `grade`: paths in, a table out."""

from __future__ import annotations

import platform
import sys
from collections.abc import Mapping
from contextlib import ExitStack
from datetime import date
from pathlib import Path
from typing import Any

from envs.coding.formats.record import FormatError
from envs.coding.livebench import install
from envs.coding.livebench.graders import Grader, Ours, Theirs
from envs.coding.livebench.grading import Outcome, Progress, grade
from envs.coding.livebench.install import Installation, LiveBenchError
from envs.coding.livebench.judgments import mean_score, read_answers
from envs.coding.livebench.selection import Item, select
from envs.coding.sandbox import BACKENDS, Limits, open_sandbox
from envs.coding.settings import one_of

MEMORY_MB = 4096
SHOWS_PACKAGES = "bwrap"
"""The back end that shows programs a folder of packages; an image has its own."""


def setup(repository: Path, folder: Path) -> int:
    """Make the grader's environment in `folder` and say what it is."""
    made = install.setup(repository, folder)
    changed = ", with changes" if made.changed else ""
    print(
        f"LiveBench at commit {made.commit[:12]}{changed}, Python {made.version}, {len(made.packages)} packages"
    )
    print(f"recorded in {folder / install.RECORD}")
    return 0


def grade_answers(
    questions: list[Path],
    answers: list[Path],
    model: str,
    release: date,
    folder: Path,
    data: Path,
    asked: str,
    workers: int,
    ignore_missing: bool,
    sandbox: Mapping[str, Any],
) -> int:
    """Grade a model's answers, write judgments below `data`, print the scores. Exit code 2: some were not graded.

    asked: `livebench`, `ours` or `both`. sandbox: `backend`, `image` and `trusted` of ours (`open_sandbox`).
    ignore_missing: questions without an answer are told and left out of the scores; without it, they are an error.
    """
    installed = _installed(folder, asked)
    items, missing = _selected(questions, answers, release)
    if missing and not ignore_missing:
        raise FormatError(
            f"{len(missing)} questions of release {release} have no answer, the first {missing[0]!r}; "
            "--ignore-missing-answers leaves them out of the scores"
        )
    with ExitStack() as stack:
        graders: list[Grader] = []
        if asked != Ours.name and installed is not None:
            graders.append(Theirs(installed, workers))
        if asked != Theirs.name:
            graders.append(_ours(stack, sandbox, workers, installed))
        outcome = grade(items, model, data, graders, _progress())
    _report(outcome, model, release)
    if missing:
        print(f"without an answer, and in no score: {', '.join(missing)} ({len(missing)} in all)")
    return 2 if outcome.failed else 0


def _installed(folder: Path, asked: str) -> Installation | None:
    """LiveBench as it was set up; None where it was not and only our grader is asked for."""
    if asked != Ours.name:
        return install.read(folder)
    return install.recorded(folder) if (folder / install.RECORD).is_file() else None


def _selected(questions: list[Path], answers: list[Path], release: date) -> tuple[list[Item], list[str]]:
    given = {name: answer for path in answers for name, answer in read_answers(path).items()}
    chosen = [select(path, given, release) for path in questions]
    return [item for found, _ in chosen for item in found], [name for _, absent in chosen for name in absent]


def _ours(stack: ExitStack, options: Mapping[str, Any], workers: int, installed: Installation | None) -> Ours:
    """Our grader. Where its boxes can show them, programs have the packages of LiveBench's environment.

    Raises `LiveBenchError` for an unknown back end and where the packages are another interpreter's.
    """
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
    opened = open_sandbox(**options, workers=workers, limits=limits, packages=packages)
    return Ours(stack.enter_context(opened), workers, made)


def _report(outcome: Outcome, model: str, release: date) -> None:
    tasks = sorted({row["task"] for row in outcome.rows})
    means = {task: mean_score([row for row in outcome.rows if row["task"] == task]) for task in tasks}
    for task, mean in means.items():
        count = sum(row["task"] == task for row in outcome.rows)
        print(f"{model}  release {release}  {task}: {mean:.1f} of 100 ({count} answers)")
    if means:
        print(f"{model}  release {release}  coding: {sum(means.values()) / len(means):.1f} of 100")
    if outcome.again:
        print(f"graded again: {len(outcome.again)} answers; no score that was there is known to be of them")
    if outcome.compared:
        print(
            f"graders: {outcome.compared - len(outcome.different)} of {outcome.compared} scores are the same"
        )
    for line in outcome.different:
        print(f"  {line}")
    if outcome.lacking:
        missing = "; ".join(f"{name} ({packages})" for name, packages in outcome.lacking.items())
        print(
            f"our grader's box has not the packages of LiveBench's environment that these import: {missing}"
        )
    for (grader, name), error in outcome.failed.items():
        print(f"not graded by {grader}: {name}: {error}", file=sys.stderr)


def _progress() -> Progress:
    """A line that is written over on a terminal, and every tenth answer elsewhere."""
    terminal = sys.stderr.isatty()

    def show(grader: str, done: int, total: int) -> None:
        if terminal or done % 10 == 0 or done == total:
            print(
                f"{grader}: {done} of {total}",
                end="\r" if terminal and done < total else "\n",
                file=sys.stderr,
            )

    return show
