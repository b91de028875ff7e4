"""Grading a model's answers to LiveBench's coding questions: with LiveBench's grader, with ours, or with both."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import date
from enum import StrEnum
from pathlib import Path

from envs.coding.formats import livebench
from envs.coding.formats.files import load
from envs.coding.formats.record import FormatError
from envs.coding.judging import passed, program_of, run
from envs.coding.livebench import box
from envs.coding.livebench.install import Installation, LiveBenchError
from envs.coding.livebench.judgments import (
    Answer,
    append,
    judgment,
    judgment_path,
    mend,
    read_judgments,
    tidy,
)
from envs.coding.problem import Problem
from envs.coding.sandbox import Sandbox, SandboxError
from rlanything.core.types import Json

RECORD = "grading.json"
LATEST = date.max
"""After every release."""


class Grader(StrEnum):
    """Whose score is written."""

    LIVEBENCH = "livebench"
    """LiveBench's own; a program that is out to cheat it can."""
    OURS = "ours"
    """The sandbox of this project, with LiveBench's comparison."""
    BOTH = "both"
    """LiveBench's is written; where ours differs is reported."""


@dataclass(frozen=True, slots=True)
class Item:
    """A question with the answer to it."""

    problem: Problem
    answer: Answer

    @property
    def task(self) -> str:
        """LiveBench's name of the task."""
        return str(self.problem.source["task"])


@dataclass
class Outcome:
    """What grading gave: the judgments, answers that could not be graded, and where the two graders differ."""

    rows: list[Json] = field(default_factory=list)
    failed: dict[str, str] = field(default_factory=dict)
    compared: int = 0
    different: list[str] = field(default_factory=list)


def select(questions: Path, answers: Mapping[str, Answer], release: date) -> tuple[list[Item], list[str]]:
    """(questions of the release with their answers, questions of it without one). Raises `FormatError`."""
    problems = asked(questions, release)
    items = [Item(p, answers[p.source["id"]]) for p in problems if p.source["id"] in answers]
    return items, [str(p.source["id"]) for p in problems if p.source["id"] not in answers]


def asked(questions: Path, release: date) -> list[Problem]:
    """The questions in a file that a release asks; `LATEST` stands for all that were not removed.

    Raises `FormatError` for a bad file, and where there are none.
    """
    problems, _ = load(questions, livebench.NAME)
    found = [problem for problem in problems if livebench.in_release(problem, release)]
    if not found:
        raise FormatError(f"{questions}: no question belongs to release {release}")
    return found


def grade(
    items: Sequence[Item],
    model: str,
    data: Path,
    grader: Grader,
    *,
    installed: Installation | None,
    sandbox: Sandbox | None,
    workers: int,
    progress: Callable[[int, int], None],
) -> Outcome:
    """Judge every answer that has no judgment yet; each judgment is on disk as soon as it is there.

    installed: needed unless the grader is `ours`; sandbox: needed unless it is `livebench`. What could not be graded
    gets no judgment. Raises `LiveBenchError` where the judgments on disk were made by another grader.
    """
    for task in sorted({item.task for item in items}):
        _record(judgment_path(data, task).parent / RECORD, grader, installed)
        mend(judgment_path(data, task))
    known = {task: read_judgments(judgment_path(data, task)) for task in {item.task for item in items}}
    outcome = Outcome(
        [known[i.task][key] for i in items if (key := (i.answer.question_id, model)) in known[i.task]]
    )
    todo = [i for i in items if (i.answer.question_id, model) not in known[i.task]]
    for done, (item, scores) in enumerate(_scored(todo, grader, installed, sandbox, workers), 1):
        _keep(item, scores, model, data, outcome)
        progress(done, len(todo))
    for task in {item.task for item in items}:
        if judgment_path(data, task).is_file():
            tidy(judgment_path(data, task))
    return outcome


def our_grade(sandbox: Sandbox, item: Item) -> box.Grade:
    """What this project's sandbox says about an answer."""
    program = program_of(item.problem, item.answer.text)
    try:
        verdict = run(sandbox, [(item.problem, program, item.problem.cases)], stop_at_failure=True)[0]
        return box.Grade(int(passed(verdict)))
    except SandboxError as error:
        return box.Grade(None, str(error))


def _scored(
    items: Sequence[Item],
    grader: Grader,
    installed: Installation | None,
    sandbox: Sandbox | None,
    workers: int,
) -> Iterator[tuple[Item, list[box.Grade]]]:
    """Each item with its grades: LiveBench's first, then ours, as far as they are asked for."""
    with ThreadPoolExecutor(workers) as pool:
        theirs = None
        if grader is not Grader.OURS:
            if installed is None:
                raise LiveBenchError(
                    "LiveBench is not set up: `rlanything livebench setup --repository PATH`"
                )
            theirs = pool.map(lambda item: their_grade(installed, item), items)
        for item in items:
            grades = [next(theirs)] if theirs is not None else []
            if sandbox is not None and grader is not Grader.LIVEBENCH:
                grades.append(our_grade(sandbox, item))
            yield item, grades


def their_grade(installed: Installation, item: Item) -> box.Grade:
    """What LiveBench's grader says about an answer, in a box of its own."""
    pair = (livebench.write(item.problem), item.answer.text)
    return box.grade(installed, [pair], len(item.problem.cases))[0]


def _keep(item: Item, grades: Sequence[box.Grade], model: str, data: Path, outcome: Outcome) -> None:
    name, first = item.answer.question_id, grades[0]
    if first.score is None:
        outcome.failed[name] = first.error
        return
    row = judgment(item.answer, item.task, model, first.score, time.time())
    append(judgment_path(data, item.task), row)
    outcome.rows.append(row)
    if len(grades) > 1 and grades[1].score is not None:
        outcome.compared += 1
        if grades[1].score != first.score:
            outcome.different.append(f"{name}: LiveBench {first.score}, ours {grades[1].score}")


def _record(path: Path, grader: Grader, installed: Installation | None) -> None:
    """Write beside the judgments what made them; judgments of two graders do not go into one file."""
    own = grader is Grader.OURS
    made: Json = {
        "grader": "ours" if own else "livebench",
        **({} if own or not installed else installed.identity),
    }
    if path.is_file():
        before = json.loads(path.read_text(encoding="utf-8"))
        changed = sorted(key for key in {*before, *made} if before.get(key) != made.get(key))
        if changed:
            raise LiveBenchError(f"{path}: the judgments beside it were made with other {', '.join(changed)}")
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(made, indent=2) + "\n", encoding="utf-8")
