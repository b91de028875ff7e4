"""The tests in records of LiveCodeBench and LiveBench: JSON in text fields, private tests plain or packed."""

from __future__ import annotations

import json
from collections.abc import Sequence

from envs.coding.formats.blob import pack, unpack
from envs.coding.formats.record import FormatError, Record
from envs.coding.problem import Case, Comparison, Problem, values_of
from rlanything.core.types import Json

STDIN, FUNCTIONAL = "stdin", "functional"
TIME_S = 6.0
"""Seconds for one test, as in LiveCodeBench's own evaluation."""
MEMORY_MB = 4096
"""LiveCodeBench sets no limit; its comments speak of 4 GB."""
FIELDS = ("public_test_cases", "private_test_cases")


def read_cases(record: Record, function: str) -> tuple[list[Case], int]:
    """(all tests, how many of them are public). Raises `FormatError`."""
    public = _cases(record, FIELDS[0], record.text(FIELDS[0]), function)
    private = _cases(record, FIELDS[1], _private(record), function)
    if not public and not private:
        record.fail(FIELDS[1], "there are no tests")
    return public + private, len(public)


def write_cases(problem: Problem, *, packed: bool) -> dict[str, Json]:
    """The two fields. `packed`: the private one as a blob."""
    kind = FUNCTIONAL if problem.function else STDIN
    rows = [{"input": c.input, "output": c.output, "testtype": kind} for c in problem.cases]
    public, private = json.dumps(rows[: problem.public]), json.dumps(rows[problem.public :])
    return {FIELDS[0]: public, FIELDS[1]: pack(private) if packed else private}


def read_function(record: Record, text: str) -> str:
    """The function's name in LiveCodeBench's `metadata`, JSON in text; '' for standard input."""
    return Record(record.parsed("metadata", text), _under(record, "metadata")).text("func_name", "")


def write_function(problem: Problem, metadata: str) -> str:
    """`metadata` with the function's name; the same text where it names that function already."""
    data = dict(json.loads(metadata))
    if (data.pop("func_name", None) or "") == problem.function:
        return metadata
    return json.dumps({**data, "func_name": problem.function} if problem.function else data)


def comparison(function: str) -> Comparison:
    """How LiveCodeBench compares."""
    return Comparison.VALUE if function else Comparison.LINES


def require_comparable(problem: Problem, form: str) -> None:
    """A problem in this format is compared as LiveCodeBench compares. Raises `FormatError`."""
    wanted = comparison(problem.function)
    if problem.compare is not wanted:
        raise FormatError(f"compare: {form} knows {wanted.value!r}, not {problem.compare.value!r}")


def _private(record: Record) -> str:
    """The private tests' JSON, unpacked where it is a blob."""
    text = record.text(FIELDS[1])
    if text.lstrip().startswith(("[", "{", '"')):
        return text
    try:
        return unpack(text)
    except ValueError as error:
        record.fail(FIELDS[1], f"neither JSON nor a packed text: {error}")


def _cases(record: Record, name: str, text: str, function: str) -> list[Case]:
    items = record.parsed(name, text)
    rows = Record({name: items}, record.path).records(name)
    kind = FUNCTIONAL if function else STDIN
    found = []
    for row in rows:
        if (said := row.one_of("testtype", (STDIN, FUNCTIONAL))) != kind:
            row.fail("testtype", f"{said!r}, but metadata {'names' if function else 'names no'} func_name")
        found.append(Case(row.text("input"), row.text("output")))
        if function:
            _require_values(row, found[-1])
    return found


def _require_values(row: Record, case: Case) -> None:
    for name, lines in (("input", case.input.split("\n")), ("output", [case.output])):
        _each_json(row, name, lines)
    try:
        values_of(case)
    except ValueError as error:
        row.fail("input", str(error))


def _each_json(row: Record, name: str, lines: Sequence[str]) -> None:
    for line in lines:
        row.parsed(name, line)


def _under(record: Record, name: str) -> str:
    return f"{record.path}.{name}" if record.path else name
