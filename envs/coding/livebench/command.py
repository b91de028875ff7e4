"""The commands `rlanything livebench setup` and `grade`: paths in, a table out."""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import ExitStack
from datetime import date
from pathlib import Path

from envs.coding.formats.record import FormatError
from envs.coding.livebench import install
from envs.coding.livebench.grading import Grader, Outcome, grade, select
from envs.coding.livebench.judgments import mean_score, read_answers
from envs.coding.sandbox import Limits, open_sandbox

MEMORY_MB = 4096


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
    grader: str,
    workers: int,
    ignore_missing: bool,
) -> int:
    """Grade a model's answers, write judgments below `data`, print the scores. Exit code 2: some were not graded.

    `ignore_missing`: questions without an answer are told and left out of the scores; without it, they are an error.
    """
    kind = Grader(grader)
    installed = None if kind is Grader.OURS else install.read(folder)
    given = {name: answer for path in answers for name, answer in read_answers(path).items()}
    chosen = [select(path, given, release) for path in questions]
    missing = [name for _, absent in chosen for name in absent]
    if missing and not ignore_missing:
        raise FormatError(
            f"{len(missing)} questions of release {release} have no answer, the first {missing[0]!r}; "
            "--ignore-missing-answers leaves them out of the scores"
        )
    items = [item for found, _ in chosen for item in found]
    with ExitStack() as stack:
        sandbox = None
        if kind is not Grader.LIVEBENCH:
            sandbox = stack.enter_context(open_sandbox(workers=workers, limits=Limits(memory_mb=MEMORY_MB)))
        outcome = grade(
            items,
            model,
            data,
            kind,
            installed=installed,
            sandbox=sandbox,
            workers=workers,
            progress=_progress(),
        )
    _report(outcome, model, release)
    if missing:
        print(f"without an answer, and in no score: {', '.join(missing)} ({len(missing)} in all)")
    return 2 if outcome.failed else 0


def _report(outcome: Outcome, model: str, release: date) -> None:
    tasks = sorted({row["task"] for row in outcome.rows})
    means = {task: mean_score([row for row in outcome.rows if row["task"] == task]) for task in tasks}
    for task, mean in means.items():
        count = sum(row["task"] == task for row in outcome.rows)
        print(f"{model}  release {release}  {task}: {mean:.1f} of 100 ({count} answers)")
    if means:
        print(f"{model}  release {release}  coding: {sum(means.values()) / len(means):.1f} of 100")
    if outcome.compared:
        print(
            f"graders: {outcome.compared - len(outcome.different)} of {outcome.compared} scores are the same"
        )
    for line in outcome.different:
        print(f"  {line}")
    for name, error in outcome.failed.items():
        print(f"not graded: {name}: {error}", file=sys.stderr)


def _progress() -> Callable[[int, int], None]:
    """A line that is written over on a terminal, and every tenth answer elsewhere."""
    terminal = sys.stderr.isatty()

    def show(done: int, total: int) -> None:
        if terminal or done % 10 == 0 or done == total:
            print(
                f"livebench: {done} of {total}",
                end="\r" if terminal and done < total else "\n",
                file=sys.stderr,
            )

    return show
