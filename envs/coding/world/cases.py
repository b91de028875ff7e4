"""Inputs for a chain, and the tests made from them. The same chain always gets the same tests."""

from __future__ import annotations

import random
from collections.abc import Sequence
from itertools import islice

from envs.coding.problem import Case, Problem
from envs.coding.world.chain import Chain, UndefinedError
from envs.coding.world.operations import Kind
from rlanything.core.errors import RLAnythingError
from rlanything.core.seeds import derive_seed

WORDS = ("red", "apple", "Tree", "moon", "stone", "Ink", "ear", "paper", "Oak", "sky", "bee", "letter")
EASY = {
    Kind.NUMBER: ("3", "4", "7", "12"),
    Kind.NUMBERS: ("3 1 2", "4 4 1", "5 8 3", "2 9 6 7"),
    Kind.TEXT: ("red", "Ink", "Oak", "bee"),
}
"""Inputs that are quick to work out. There are few, so a small model meets each of them often."""
TRIES = 6
"""Sets of inputs tried before a chain counts as having no good tests."""
DRAWS = 5
"""Draws for one test."""
SEARCHED = 100
"""Inputs tried to find one that detects a certain wrong chain."""
TIME_S = 2.0
MEMORY_MB = 256
FORMAT = "world"


class NoTestsError(RLAnythingError, ValueError):
    """No inputs were found on which the chain is defined and differs from all of `shortened` and `unfinished`."""


def problem_of(chain: Chain, count: int, level: str = "", others: Sequence[Chain] = ()) -> Problem:
    """A chain as a problem with `count` tests, and one more for each of `others` that these do not detect.

    Raises `NoTestsError`.
    """
    found = cases(chain, count)
    return Problem(
        statement=chain.statement,
        cases=(*found, *_detecting(chain, others, found)),
        time_s=TIME_S,
        memory_mb=MEMORY_MB,
        difficulty=level,
        solution=chain.program,
        source={"format": FORMAT, "chain": chain.to_json()},
    )


def cases(chain: Chain, count: int) -> tuple[Case, ...]:
    """`count` tests with different inputs that detect all of `shortened` and `unfinished`. Raises `NoTestsError`."""
    rng = random.Random(derive_seed(0, "coding/cases", chain.key))
    without = [*shortened(chain), *unfinished(chain)]
    for _ in range(TRIES):
        found = _draw(chain, count, rng)
        if len(found) == count and _varied(found) and all(_differs(c, found) for c in without):
            return tuple(found)
    raise NoTestsError(f"no {count} tests for {chain.key!r}")


def _detecting(chain: Chain, others: Sequence[Chain], found: Sequence[Case]) -> list[Case]:
    """A test for each of `others` that passes all of `found`, where one of `SEARCHED` inputs gives one."""
    rng = random.Random(derive_seed(0, "coding/detecting", chain.key))
    more: list[Case] = []
    for other in others:
        if not _differs(other, [*found, *more]):
            drawn = (draw_case(chain, rng) for _ in range(SEARCHED))
            more += islice((case for case in drawn if case is not None and _differs(other, [case])), 1)
    return more


def draw_case(chain: Chain, rng: random.Random, *, easy: bool = False) -> Case | None:
    """A test with a random or an `easy` input; None where the chain is not defined on it."""
    stdin = easy_input(chain.reads, rng) if easy else draw_input(chain.reads, rng)
    try:
        return Case(stdin, chain.output(stdin))
    except UndefinedError:
        return None


def draw_input(kind: Kind, rng: random.Random) -> str:
    """A line of input."""
    if kind is Kind.NUMBER:
        return str(rng.randint(1, 30) if rng.random() < 0.8 else rng.randint(-20, 60))
    if kind is Kind.NUMBERS:
        values = [
            rng.randint(1, 12) if rng.random() < 0.85 else rng.randint(-9, 30)
            for _ in range(rng.randint(3, 6))
        ]
        return " ".join(map(str, values))
    return " ".join(rng.choices(WORDS, k=rng.randint(1, 3)))


def easy_input(kind: Kind, rng: random.Random) -> str:
    """One of the easy inputs."""
    return rng.choice(EASY[kind])


def shortened(chain: Chain) -> list[Chain]:
    """All chains that leave out one step or several neighbouring ones, and give the same kind of value."""
    found, steps = [], chain.steps
    for start in range(len(steps)):
        for end in range(start + 1, len(steps) + 1):
            rest = (*steps[:start], *steps[end:])
            if rest and steps[start].operation.takes is steps[end - 1].operation.gives:
                found.append(Chain(chain.reads, rest))
    return found


def unfinished(chain: Chain) -> list[Chain]:
    """All chains that stop before the end, whatever they give: the digits of a number below 10 look like the number."""
    return [Chain(chain.reads, chain.steps[:end]) for end in range(1, len(chain.steps))]


def first_failed(chain: Chain, tests: Sequence[Case]) -> int | None:
    """The number, from 1, of the first test that the chain does not pass; None when it passes all."""
    for number, case in enumerate(tests, 1):
        try:
            given = chain.output(case.input)
        except UndefinedError:
            return number
        if given.split() != case.output.split():
            return number
    return None


def why_wrong(problem: Problem) -> str:
    """Why a problem of this world does not match its chain, or ''. Raises `ChainError`."""
    chain = Chain.from_json(problem.source.get("chain"))
    if (problem.statement, problem.solution) != (chain.statement, chain.program):
        return "its sentences or its solution are not those of its chain"
    wrong = first_failed(chain, problem.cases)
    return "" if wrong is None else f"test {wrong} is not what the problem asks for"


def _draw(chain: Chain, count: int, rng: random.Random) -> list[Case]:
    found: dict[str, Case] = {}
    for _ in range(count * DRAWS):
        case = draw_case(chain, rng)
        if case is not None:
            found.setdefault(case.input, case)
        if len(found) == count:
            break
    return list(found.values())


def _varied(tests: Sequence[Case]) -> bool:
    """Whether outputs differ from each other, and from their inputs."""
    return len({c.output for c in tests}) > 1 and any(c.output.split() != c.input.split() for c in tests)


def _differs(other: Chain, tests: Sequence[Case]) -> bool:
    """Whether another chain fails one of these tests."""
    return first_failed(other, tests) is not None
