"""LiveBench's question.jsonl, tasks LCB_generation and coding_completion: one question a line.

The statement is LiveBench's prompt (`turns[0]`). Fields that this project does not use are kept, so that reading and
writing a question gives the same question.
"""

from __future__ import annotations

from datetime import date, datetime

from envs.coding.formats import lcbtests
from envs.coding.formats.record import FormatError, Record
from envs.coding.problem import Problem
from rlanything.core.types import Json

NAME = "livebench"
CATEGORY = "coding"
TASKS = ("LCB_generation", "coding_completion")
_DATES = ("livebench_release_date", "livebench_removal_date")
_USED = ("turns", "partial_solution", *lcbtests.FIELDS)


def read(record: Record) -> Problem:
    """The problem that a question asks. Raises `FormatError`."""
    record.one_of("category", (CATEGORY,))
    task = record.one_of("task", TASKS)
    origin = record.record("original_json")
    function = lcbtests.read_function(origin, origin.text("metadata"))
    cases, public = lcbtests.read_cases(record, function)
    turns = record.texts("turns")
    if len(turns) != 1 or not turns[0].strip():
        record.fail("turns", f"{len(turns)} turns; one text is expected")
    prefix = record.text("partial_solution", "")
    if task == TASKS[1] and not prefix:
        record.fail("partial_solution", "a completion task needs one")
    dates = {name: _read_date(record, name) for name in _DATES}
    return Problem(
        statement=turns[0],
        cases=tuple(cases),
        public=public,
        function=function,
        starter=origin.text("starter_code", ""),
        prefix=prefix,
        compare=lcbtests.comparison(function),
        time_s=lcbtests.TIME_S,
        memory_mb=lcbtests.MEMORY_MB,
        difficulty=origin.text("difficulty", ""),
        source={
            "format": NAME,
            "id": record.name("question_id"),
            "task": task,
            "released": dates[_DATES[0]],
            "removed": dates[_DATES[1]],
            "record": record.rest(_USED),
        },
    )


def write(problem: Problem) -> dict[str, Json]:
    """The question, its private tests as plain JSON: LiveBench's own reader would unpickle a blob.

    Raises `FormatError` for a problem that LiveBench cannot hold.
    """
    lcbtests.require_comparable(problem, "LiveBench")
    source = problem.source
    kept: dict[str, Json] = dict(source["record"]) if source.get("format") == NAME else {}
    origin = dict(kept.get("original_json", {}))
    origin["metadata"] = lcbtests.write_function(problem, origin.get("metadata", "{}"))
    for name, value in (("starter_code", problem.starter), ("difficulty", problem.difficulty)):
        if value != origin.get(name, ""):
            origin[name] = value
    task = TASKS[1] if problem.prefix else TASKS[0]
    if "id" not in source:
        raise FormatError("source.id: LiveBench needs a question_id")
    return {
        **kept,
        "question_id": source["id"],
        "category": CATEGORY,
        "task": kept.get("task", task),
        "turns": [problem.statement],
        "partial_solution": problem.prefix,
        "original_json": origin,
        _DATES[0]: source.get("released", ""),
        _DATES[1]: source.get("removed", ""),
        **lcbtests.write_cases(problem, packed=False),
    }


def in_release(problem: Problem, release: date) -> bool:
    """Whether a question belongs to the release of that date: published by then, and not removed by then."""
    released, removed = problem.source["released"], problem.source["removed"]
    return (not released or _day(released) <= release) and (not removed or _day(removed) > release)


def _read_date(record: Record, name: str) -> str:
    """A date as the file has it, with or without a time; '' where there is none. Raises `FormatError`."""
    text = record.text(name, "")
    try:
        if text:
            _day(text)
    except ValueError:
        record.fail(name, f"{text!r} is not a date such as 2024-11-25")
    return text


def _day(text: str) -> date:
    return datetime.fromisoformat(text).date()
