"""LiveCodeBench's problems (code_generation and code_generation_lite): one a line.

The statement is the question alone. The prompt templates hold the instructions to the model.
"""

from __future__ import annotations

from envs.coding.formats import lcbtests
from envs.coding.formats.record import FormatError, Record
from envs.coding.problem import Problem
from rlanything.core.types import Json

NAME = "livecodebench"
_USED = ("question_content", "starter_code", "difficulty", "metadata", *lcbtests.FIELDS)


def read(record: Record) -> Problem:
    """The problem of a line. Raises `FormatError`."""
    function = lcbtests.read_function(record, record.text("metadata"))
    cases, public = lcbtests.read_cases(record, function)
    return Problem(
        statement=record.name("question_content"),
        cases=tuple(cases),
        public=public,
        function=function,
        starter=record.text("starter_code", ""),
        compare=lcbtests.comparison(function),
        time_s=lcbtests.TIME_S,
        memory_mb=lcbtests.MEMORY_MB,
        difficulty=record.text("difficulty", ""),
        source={
            "format": NAME,
            "id": record.name("question_id"),
            "metadata": record.text("metadata"),
            "record": record.rest(_USED),
        },
    )


def write(problem: Problem) -> dict[str, Json]:
    """The line. Raises `FormatError` for a problem that LiveCodeBench cannot hold."""
    lcbtests.require_comparable(problem, "LiveCodeBench")
    if problem.prefix:
        raise FormatError("prefix: LiveCodeBench has no completion tasks")
    source = problem.source
    if "id" not in source:
        raise FormatError("source.id: LiveCodeBench needs a question_id")
    own = source.get("format") == NAME
    kept: dict[str, Json] = dict(source["record"]) if own else {}
    return {
        "question_title": "",
        "platform": "codeforces",
        "contest_id": "",
        "contest_date": "1970-01-01T00:00:00",
        **kept,
        "question_id": source["id"],
        "question_content": problem.statement,
        "starter_code": problem.starter,
        "difficulty": problem.difficulty,
        "metadata": lcbtests.write_function(problem, source["metadata"] if own else "{}"),
        **lcbtests.write_cases(problem, packed=True),
    }
