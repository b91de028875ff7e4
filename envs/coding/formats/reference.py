"""The JSON of the paper's reference code: one list of problems, tests as two lists, standard input and output."""

from __future__ import annotations

from envs.coding.formats.codecontests import require_printing
from envs.coding.formats.record import FormatError, Record
from envs.coding.problem import Case, Comparison, Problem
from rlanything.core.types import Json

NAME = "reference"
METHOD = "stdio"
TIME_S = 1.0
"""What the reference code takes where the file names no limit."""
_USED = ("question", "test_input", "test_output", "test_method", "test_time_limit")


def read(record: Record) -> Problem:
    """The problem of an item. Raises `FormatError`."""
    if (method := record.text("test_method", METHOD)) != METHOD:
        record.fail("test_method", f"{method!r}; only {METHOD!r} has tests with an input and an output")
    inputs, outputs = record.texts("test_input"), record.texts("test_output")
    if not inputs or len(inputs) != len(outputs):
        record.fail(
            "test_output", f"{len(outputs)} outputs for {len(inputs)} inputs; as many, and at least one"
        )
    return Problem(
        statement=record.name("question"),
        cases=tuple(Case(i, o) for i, o in zip(inputs, outputs, strict=True)),
        compare=Comparison.TOKENS,
        time_s=record.number("test_time_limit", TIME_S),
        source={"format": NAME, "record": record.rest(_USED)},
    )


def write(problem: Problem) -> dict[str, Json]:
    """The item. Raises `FormatError` for a problem that the reference code cannot hold."""
    require_printing(problem, "the reference code")
    if problem.starter:
        raise FormatError("starter: the reference code has no code to start from")
    return {
        **(problem.source["record"] if problem.source.get("format") == NAME else {}),
        "question": problem.statement,
        "test_input": [case.input for case in problem.cases],
        "test_output": [case.output for case in problem.cases],
        "test_method": METHOD,
        "test_time_limit": problem.time_s,
    }
