"""A programming problem, and how it becomes a task and back."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from typing import Any, Self

from rlanything.core.errors import UserError
from rlanything.core.ids import canonical_json
from rlanything.core.types import Json, Task

ENV = "coding"
MOST_SECONDS = 600.0
MOST_MEGABYTES = 65_536
DEEPEST = 100
"""Most levels of nesting in a functional test's values: Python cannot write or compare some hundreds."""


class ProblemError(UserError):
    """A problem with a wrong field; the message names it in one sentence."""


class Comparison(StrEnum):
    """When an output counts as the expected one."""

    TOKENS = "tokens"
    """Printed text: the same words (CodeContests and the reference code)."""
    LINES = "lines"
    """Printed text: the same lines without outer blanks, or lines of equal numbers (LiveBench)."""
    VALUE = "value"
    """A function's result: equal as Python values; an outer tuple is a list (LiveBench)."""


@dataclass(frozen=True, slots=True)
class Case:
    """One test. Functional tests hold one JSON value per line of `input`, and the result as JSON in `output`."""

    input: str
    output: str


@dataclass(frozen=True)
class Problem:
    """A statement and the tests of its programs.

    cases: the tests; the first `public` of them may be shown.
    function: what the tests call; '' for programs that read standard input and print.
    starter: code that the answer fills in; shown.
    prefix: code that is put before an answer without it (LiveBench's completion task).
    time_s, memory_mb: limits of one test.
    solution: a correct program, or ''.
    difficulty: as the source says it.
    source: `format`, `id`, and what else the format needs.
    """

    statement: str
    cases: tuple[Case, ...]
    public: int = 0
    function: str = ""
    starter: str = ""
    prefix: str = ""
    compare: Comparison = Comparison.TOKENS
    time_s: float = 6.0
    memory_mb: int = 1024
    difficulty: str = ""
    solution: str = ""
    source: Mapping[str, Json] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not self.statement.strip():
            raise ProblemError("statement: it is empty")
        if not self.cases:
            raise ProblemError("cases: a problem needs at least one test")
        if not 0 <= self.public <= len(self.cases):
            raise ProblemError(f"public: {self.public} is not a number from 0 to {len(self.cases)}")
        if self.function and not self.function.isidentifier():
            raise ProblemError(f"function: {self.function!r} is no name of a function")
        if bool(self.function) != (self.compare is Comparison.VALUE):
            raise ProblemError(f"compare: {self.compare.value!r} does not go with function {self.function!r}")
        if not 0 < self.time_s <= MOST_SECONDS:  # nor is NaN
            raise ProblemError(f"time_s: {self.time_s} is not above 0 and at most {MOST_SECONDS:g}")
        if not 0 < self.memory_mb <= MOST_MEGABYTES:
            raise ProblemError(f"memory_mb: {self.memory_mb} is not from 1 to {MOST_MEGABYTES}")

    @cached_property
    def longest_output(self) -> int:
        """Bytes of the longest expected output."""
        return max(len(case.output.encode("utf-8", "surrogatepass")) for case in self.cases)

    @property
    def payload(self) -> dict[str, Json]:
        """Everything but the statement, as JSON."""
        return {
            "cases": [[case.input, case.output] for case in self.cases],
            "public": self.public,
            "function": self.function,
            "starter": self.starter,
            "prefix": self.prefix,
            "compare": self.compare.value,
            "time_s": self.time_s,
            "memory_mb": self.memory_mb,
            "difficulty": self.difficulty,
            "solution": self.solution,
            "source": dict(self.source),
        }

    def to_task(self, metadata: Mapping[str, Json] | None = None) -> Task:
        """The problem as a task; its instruction is the statement."""
        return Task(ENV, self.statement, self.payload, metadata or {})

    @classmethod
    def from_task(cls, task: Task) -> Self:
        """Inverse of `to_task`. Raises `ProblemError`."""
        if task.env != ENV:
            raise ProblemError(f"env: {task.env!r} is not {ENV!r}")
        payload = task.payload
        wrong = sorted(set(_TYPES) ^ set(payload))
        if wrong:
            raise ProblemError(f"payload: {', '.join(map(str, wrong))} is missing or unknown")
        for key, kinds in _TYPES.items():
            if type(payload[key]) not in kinds:
                raise ProblemError(f"{key}: {type(payload[key]).__name__} is not {kinds[0].__name__}")
        compare = payload["compare"]
        if compare not in list(Comparison):
            raise ProblemError(f"compare: {compare!r} is not one of {', '.join(Comparison)}")
        problem = cls(
            task.instruction,
            tuple(_case(k, pair) for k, pair in enumerate(payload["cases"], 1)),
            **{key: payload[key] for key in _TYPES if key not in ("cases", "compare")},
            compare=Comparison(compare),
        )
        require_json(problem)
        return problem


def values_of(case: Case) -> tuple[list[Json], Json]:
    """Arguments and result of a functional test. Raises `ValueError`: no JSON, or nested deeper than `DEEPEST`."""
    try:
        *arguments, result = (json.loads(text) for text in (*case.input.split("\n"), case.output))
    except RecursionError:
        raise ValueError(f"nested deeper than {DEEPEST} levels") from None
    level: list[Json] = [*arguments, result]
    for _ in range(DEEPEST):
        level = [inner for value in level for inner in _inside(value)]
    if level:
        raise ValueError(f"nested deeper than {DEEPEST} levels")
    return arguments, result


def require_values(problem: Problem) -> None:
    """Raise `ProblemError` unless all tests of a function are JSON."""
    for number, case in enumerate(problem.cases if problem.function else (), 1):
        try:
            values_of(case)
        except ValueError as error:
            raise ProblemError(f"test {number}: arguments and result must be JSON: {error}") from None


def _inside(value: Json) -> Iterable[Json]:
    return value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()


_TYPES: dict[str, tuple[type, ...]] = {
    "cases": (list, tuple),
    "public": (int,),
    "function": (str,),
    "starter": (str,),
    "prefix": (str,),
    "compare": (str,),
    "time_s": (float, int),
    "memory_mb": (int,),
    "difficulty": (str,),
    "solution": (str,),
    "source": (dict,),
}


def _case(number: int, pair: Any) -> Case:
    if not isinstance(pair, list | tuple) or [type(part) for part in pair] != [str, str]:
        raise ProblemError(f"cases: test {number} is not a pair of texts")
    return Case(*pair)


def require_json(problem: Problem) -> None:
    """Raise `ProblemError` where the task has no JSON in UTF-8, which its id is the hash of."""
    try:
        canonical_json([problem.statement, problem.payload]).encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise ProblemError(f"payload: it cannot be written as JSON: {error}") from None
