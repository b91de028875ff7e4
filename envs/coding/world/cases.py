"""Inputs for a chain, and the tests made from them: the same tests for the same chain, wherever it is asked for."""

from __future__ import annotations

import random
from collections.abc import Sequence

from envs.coding.problem import Case, Problem
from envs.coding.world.chain import Chain, Undefined
from envs.coding.world.operations import Kind
from rlanything.core.seeds import derive_seed

WORDS = ("red", "apple", "Tree", "moon", "stone", "Ink", "ear", "paper", "Oak", "sky", "bee", "letter")
EASY = {
    Kind.NUMBER: ("3", "4", "7", "12"),
    Kind.NUMBERS: ("3 1 2", "4 4 1", "5 8 3", "2 9 6 7"),
    Kind.TEXT: ("red", "Ink", "Oak", "bee"),
}
"""Inputs that are quick to work out: few, so that a small model meets each of them often."""
TRIES = 6
"""Sets of inputs tried before a chain counts as having no good tests."""
DRAWS = 5
"""Draws for one test."""
TIME_S = 2.0
MEMORY_MB = 256
FORMAT = "world"


class NoTests(ValueError):
    """No inputs were found on which the chain is defined and every step of it matters."""


def problem_of(chain: Chain, count: int, level: str = "") -> Problem:
    """The problem that a chain is, with `count` tests. Raises `NoTests`."""
    return Problem(
        statement=chain.statement,
        cases=cases(chain, count),
        time_s=TIME_S,
        memory_mb=MEMORY_MB,
        difficulty=level,
        solution=chain.program,
        source={"format": FORMAT, "chain": chain.to_json()},
    )


def cases(chain: Chain, count: int) -> tuple[Case, ...]:
    """`count` tests of different inputs, on which leaving out any step shows. Raises `NoTests`."""
    rng = random.Random(derive_seed(0, "coding/cases", chain.key))
    without = shortened(chain)
    for _ in range(TRIES):
        found = _draw(chain, count, rng)
        if len(found) == count and _telling(found) and all(_differs(c, found) for c in without):
            return tuple(found)
    raise NoTests(f"no {count} tests for {chain.key!r}")


def draw_case(chain: Chain, rng: random.Random, *, easy: bool = False) -> Case | None:
    """One test of a random input, or of an `easy` one; None where the chain gives nothing for it."""
    stdin = easy_input(chain.reads, rng) if easy else draw_input(chain.reads, rng)
    try:
        return Case(stdin, chain.run(stdin))
    except Undefined:
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
    """A line of input as a cautious writer of tests takes it."""
    return rng.choice(EASY[kind])


def shortened(chain: Chain) -> list[Chain]:
    """The chains that leave out one step, or several neighbours, and still fit together."""
    found, steps = [], chain.steps
    for start in range(len(steps)):
        for end in range(start + 1, len(steps) + 1):
            rest = (*steps[:start], *steps[end:])
            if rest and steps[start].operation.takes is steps[end - 1].operation.gives:
                found.append(Chain(chain.reads, rest))
    return found


def agrees(chain: Chain, tests: Sequence[Case]) -> int | None:
    """Number, from 1, of the first test whose output is not what the chain gives; None when all are right."""
    for number, case in enumerate(tests, 1):
        try:
            given = chain.run(case.input)
        except Undefined:
            return number
        if given.split() != case.output.split():
            return number
    return None


def why_wrong(problem: Problem) -> str:
    """Why a problem that claims to be of this world is not what its chain says, or ''. Raises `BadChain`."""
    chain = Chain.from_json(problem.source.get("chain"))
    if (problem.statement, problem.solution) != (chain.statement, chain.program):
        return "its sentences or its solution are not those of its chain"
    wrong = agrees(chain, problem.cases)
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


def _telling(tests: Sequence[Case]) -> bool:
    """Whether outputs differ from each other, and from their inputs."""
    return len({c.output for c in tests}) > 1 and any(c.output.split() != c.input.split() for c in tests)


def _differs(other: Chain, tests: Sequence[Case]) -> bool:
    """Whether another chain gives anything else for the inputs of these tests."""
    return agrees(other, tests) is not None
