"""CodeContests, as the rows of its published table: tests by column, time limit in seconds and nanoseconds."""

from __future__ import annotations

from collections.abc import Sequence

from envs.coding.formats.record import FormatError, Record
from envs.coding.problem import Case, Comparison, Problem
from rlanything.core.types import Json

NAME = "codecontests"
DIFFICULTIES = (
    "unknown_difficulty", "easy", "medium", "hard", "harder", "hardest", "external", "a", "b", "c", "d", "e", "f", "g",
    "h", "i", "j", "k", "", "l", "m", "n", "o", "p", "q", "r", "s", "t", "u", "v",
)  # fmt: skip
"""Names of the numbers of ContestProblem.Difficulty, in lower case; 18 has no name."""
PYTHON3 = 3
"""The language of a solution that runs here."""
TIME_S = 6.0
"""For a problem without a limit of its own."""
MEMORY_MB = 1024
_KINDS = ("public_tests", "private_tests", "generated_tests")
_USED = ("description", "difficulty", "time_limit", "memory_limit_bytes", *_KINDS)
_MEGABYTE = 2**20


def read(record: Record) -> Problem:
    """The problem of a row. Raises `FormatError`."""
    for name in ("input_file", "output_file"):
        if record.text(name, ""):
            record.fail(name, "the problem wants files; only standard input and output can be tested")
    columns = [_cases(record, kind) for kind in _KINDS]
    cases = [case for column in columns for case in column]
    if not cases:
        record.fail(_KINDS[0], "there are no tests")
    return Problem(
        statement=record.name("description"),
        cases=tuple(cases),
        public=len(columns[0]),
        time_s=_time(record),
        memory_mb=_memory(record),
        difficulty=_difficulty(record),
        solution=_solution(record),
        source={
            "format": NAME,
            "id": record.name("name"),
            "generated": len(columns[2]),
            "record": record.rest(_USED),
        },
    )


def difficulty(problem: Problem) -> int:
    """The number of the problem's difficulty; 0 is unknown."""
    return DIFFICULTIES.index(problem.difficulty)


def write(problem: Problem) -> dict[str, Json]:
    """The row. Raises `FormatError` for a problem that CodeContests cannot hold."""
    require_printing(problem, "CodeContests")
    if problem.starter:
        raise FormatError("starter: CodeContests has no code to start from")
    if "id" not in problem.source:
        raise FormatError("source.id: CodeContests needs a name")
    own = problem.source.get("format") == NAME
    generated = problem.source["generated"] if own else 0
    private = len(problem.cases) - generated
    seconds, nanos = divmod(round(problem.time_s * 10**9), 10**9)
    return {
        "solutions": _columns(
            "language", "solution", [(PYTHON3, problem.solution)] if problem.solution else []
        ),
        **(problem.source["record"] if own else {}),
        "name": problem.source["id"],
        "description": problem.statement,
        "time_limit": {"seconds": seconds, "nanos": nanos},
        "memory_limit_bytes": problem.memory_mb * _MEGABYTE,
        "difficulty": DIFFICULTIES.index(problem.difficulty) if problem.difficulty in DIFFICULTIES else 0,
        _KINDS[0]: _tests(problem.cases[: problem.public]),
        _KINDS[1]: _tests(problem.cases[problem.public : private]),
        _KINDS[2]: _tests(problem.cases[private:]),
    }


def require_printing(problem: Problem, form: str) -> None:
    """Raise `FormatError` unless the problem tests whole programs and compares words."""
    if problem.prefix or problem.function:
        raise FormatError(f"function: {form} tests whole programs")
    if problem.compare is not Comparison.TOKENS:
        raise FormatError(f"compare: {form} knows {Comparison.TOKENS.value!r}, not {problem.compare.value!r}")


def _cases(record: Record, kind: str) -> list[Case]:
    columns = record.record(kind, {"input": [], "output": []})
    inputs, outputs = columns.texts("input"), columns.texts("output")
    if len(inputs) != len(outputs):
        columns.fail("output", f"{len(outputs)} outputs for {len(inputs)} inputs")
    return [Case(i, o) for i, o in zip(inputs, outputs, strict=True)]


def _tests(cases: Sequence[Case]) -> dict[str, Json]:
    return _columns("input", "output", [(c.input, c.output) for c in cases])


def _columns(first: str, second: str, rows: Sequence[tuple[Json, Json]]) -> dict[str, Json]:
    return {first: [row[0] for row in rows], second: [row[1] for row in rows]}


def _time(record: Record) -> float:
    limit = record.record("time_limit", {})
    seconds = limit.number("seconds", 0) + limit.number("nanos", 0) / 1e9
    return seconds or TIME_S


def _memory(record: Record) -> int:
    size = record.number("memory_limit_bytes", 0)
    return max(1, int(size) // _MEGABYTE) if size else MEMORY_MB


def _difficulty(record: Record) -> str:
    number = record.number("difficulty", 0)
    if number not in range(len(DIFFICULTIES)):
        record.fail("difficulty", f"{number} is not from 0 to {len(DIFFICULTIES) - 1}")
    return DIFFICULTIES[int(number)]


def _solution(record: Record) -> str:
    columns = record.record("solutions", {"language": [], "solution": []})
    programs = columns.texts("solution")
    languages = columns.data.get("language")
    if not isinstance(languages, list) or len(languages) != len(programs):
        columns.fail("language", f"not one language for each of {len(programs)} solutions")
    right = [p for p, language in zip(programs, languages, strict=True) if language == PYTHON3]
    return right[0] if right else ""
