"""A chain of operations: its sentences, its program, its output, and parsing sentences back into a chain."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import pairwise

from envs.coding.world.operations import (
    ENDING,
    INTRODUCTIONS,
    MOST,
    OPERATIONS,
    READ,
    WRITE,
    Kind,
    Operation,
)
from rlanything.core.errors import ModelOutputError, RLAnythingError
from rlanything.core.types import Json

LONGEST = 6
"""Most steps of a problem. A program of a careless programmer may have more lines (`habits`)."""
LONGEST_INPUT = 120
"""Characters of an input."""
LARGEST = 10**6
"""Numbers between steps stay below this."""


class ChainError(ModelOutputError):
    """Sentences or steps that are not a chain; the message quotes them."""


class UndefinedError(RLAnythingError, ValueError):
    """The chain is not defined on this input."""


@dataclass(frozen=True, slots=True)
class Step:
    """An operation with its constant (0 where it has none); `wording` picks one of its sentences."""

    operation: Operation
    k: int = 0
    wording: int = 0

    @property
    def sentence(self) -> str:
        """The sentence that asks for the step."""
        return self.operation.say[self.wording].format(k=self.k)

    @property
    def line(self) -> str:
        """The step in Python."""
        return self.operation.code.format(k=self.k)

    @property
    def label(self) -> str:
        """The operation's name, with the constant where it has one."""
        return f"{self.operation.name} {self.k}" if self.operation.constants else self.operation.name

    @property
    def key(self) -> str:
        """Name and constant: equal for all wordings of the step."""
        return f"{self.operation.name} {self.k}"


@dataclass(frozen=True)
class Chain:
    """The kind of input, and the steps. Raises `ChainError` when a step does not fit the one before it."""

    reads: Kind
    steps: tuple[Step, ...]

    def __post_init__(self) -> None:
        held = self.reads
        for step in self.steps:
            if step.operation.takes is not held:
                raise ChainError(
                    f"{step.sentence!r} needs {step.operation.takes.value}, and there is {held.value}"
                )
            held = step.operation.gives

    @cached_property
    def statement(self) -> str:
        """The problem in words."""
        return " ".join([INTRODUCTIONS[self.reads], *(step.sentence for step in self.steps), ENDING])

    @cached_property
    def program(self) -> str:
        """The reference solution."""
        return "\n".join([READ[self.reads], *(step.line for step in self.steps), WRITE[self.gives]])

    @property
    def gives(self) -> Kind:
        """The kind of value that is printed."""
        return self.steps[-1].operation.gives

    @property
    def key(self) -> str:
        """Equal for all wordings of the chain."""
        return " | ".join([self.reads.value, *(step.key for step in self.steps)])

    @property
    def pairs(self) -> list[tuple[str, str]]:
        """The pairs of neighbouring operations, by name."""
        names = [step.operation.name for step in self.steps]
        return list(pairwise(names))

    def output(self, stdin: str) -> str:
        """What the program prints for an input. Raises `UndefinedError` as `trace` does."""
        return self.trace(stdin)[-1]

    def trace(self, stdin: str) -> list[str]:
        """The value after reading and after each step, as it would be printed.

        Raises `UndefinedError` where a step fails, a value is too large, or nothing would be printed.
        """
        try:
            value: Json = _read(self.reads, stdin)
            held = [_printed(value)]
            for step in self.steps:
                value = step.operation.do(value, step.k)
                _require_small(value)
                held.append(_printed(value))
        except (ValueError, IndexError) as error:
            raise UndefinedError(f"{stdin!r}: {error}") from None
        if not held[-1].strip():
            raise UndefinedError(f"{stdin!r}: nothing is printed")
        return held

    def to_json(self) -> dict[str, Json]:
        """The chain as JSON."""
        return {"reads": self.reads.value, "steps": [[s.operation.name, s.k, s.wording] for s in self.steps]}

    @classmethod
    def from_json(cls, data: Json) -> Chain:
        """Inverse of `to_json`, for untrusted data. Raises `ChainError`."""
        if (
            not isinstance(data, dict)
            or set(data) != {"reads", "steps"}
            or not isinstance(data["steps"], list)
        ):
            raise ChainError("a chain is an object of reads and steps")
        if data["reads"] not in list(Kind):
            raise ChainError(f"reads: {data['reads']!r} is not one of {', '.join(Kind)}")
        return _problem(Kind(data["reads"]), [_step(item) for item in data["steps"]])


def parse(statement: str) -> Chain:
    """The chain that sentences ask for. Raises `ChainError`, quoting what is not understood."""
    words = " ".join(statement.split())
    starts = [(kind, text) for kind, text in INTRODUCTIONS.items() if words.startswith(text)]
    if not starts or not words.endswith(ENDING):
        raise ChainError(
            f"a problem begins with one of {', '.join(INTRODUCTIONS.values())} and ends with {ENDING}"
        )
    held, opening = starts[0]
    body = words[len(opening) : -len(ENDING)].strip()
    steps: list[Step] = []
    for sentence in re.findall(r"[^.]+\.?", body)[: LONGEST + 1]:
        steps.append(_understood(held, sentence.strip()))
        held = steps[-1].operation.gives
    return _problem(starts[0][0], steps)


def constants(operation: Operation) -> Sequence[int]:
    """The constants that an operation may have."""
    return (0,) if operation.constants is None else range(operation.constants[0], operation.constants[1] + 1)


def _problem(reads: Kind, steps: Sequence[Step]) -> Chain:
    """The chain of a problem. Raises `ChainError` for no steps, and for more than a problem may have."""
    if not 1 <= len(steps) <= LONGEST:
        raise ChainError(f"{len(steps)} steps; a problem has 1 to {LONGEST}")
    return Chain(reads, tuple(steps))


def _step(item: Json) -> Step:
    if not isinstance(item, list) or [type(part) for part in item] != [str, int, int]:
        raise ChainError(f"step {item!r} is not [name, constant, wording]")
    name, k, wording = item
    if name not in OPERATIONS:
        raise ChainError(f"{name!r} is no operation")
    operation = OPERATIONS[name]
    if k not in constants(operation) or wording not in range(len(operation.say)):
        raise ChainError(f"step {item!r}: no such constant or wording")
    return Step(operation, k, wording)


def _understood(held: Kind, sentence: str) -> Step:
    for operation, wording, pattern in _patterns(held):
        if found := pattern.fullmatch(sentence):
            k = int(found["k"]) if operation.constants else 0
            if k in constants(operation) and operation.say[wording].format(k=k) == sentence:
                return Step(operation, k, wording)
    raise ChainError(f"{sentence[:80]!r} asks for nothing that can be done with {held.value}")


@lru_cache(maxsize=len(Kind))
def _patterns(held: Kind) -> list[tuple[Operation, int, re.Pattern[str]]]:
    found = []
    for operation in OPERATIONS.values():
        if operation.takes is held:
            for wording, say in enumerate(operation.say):
                first, *more = (re.escape(part) for part in say.split("{k}"))
                blanks = "".join(
                    (r"(?P<k>\d{1,2})" if n == 0 else r"\d{1,2}") + part for n, part in enumerate(more)
                )
                found.append((operation, wording, re.compile(first + blanks)))
    return found


def _read(kind: Kind, stdin: str) -> Json:
    line = stdin.rstrip("\n")  # before the text it ends the line that a program reads
    if not line.isprintable() or len(stdin) > LONGEST_INPUT:  # a program's input() ends at \r too
        raise ValueError("more than a line of plain text")
    if kind is Kind.NUMBER:
        return int(line)
    return [int(word) for word in line.split()] if kind is Kind.NUMBERS else line


def _printed(value: Json) -> str:
    return " ".join(map(str, value)) if isinstance(value, list) else str(value)


def _require_small(value: Json) -> None:
    numbers = value if isinstance(value, list) else [value] if isinstance(value, int) else []
    if any(abs(number) >= LARGEST for number in numbers) or (
        not isinstance(value, int) and len(value) > MOST
    ):
        raise ValueError("too large")
