"""Habits of a careless programmer: steps that are written so that they are wrong on some inputs only.

A program that imitates demonstrations with habits has them too, as a part of what it is: it chooses the careless line
more often than the right one, so a lower temperature strengthens the habit. Few tests show it. Tests that hold what is
easily got wrong (a number that equals the bound, equal numbers, capital vowels, a single word) do.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType

from envs.coding.world.chain import Chain, Step
from envs.coding.world.operations import Do, Operation, upto

SMALL_VOWELS = "aeiou"


@dataclass(frozen=True, slots=True)
class Slip:
    """How a careless programmer writes an operation: the line of Python, and what it computes."""

    code: str
    do: Do

    def of(self, operation: Operation) -> Operation:
        """The operation with the careless line in place of the right one."""
        return replace(operation, code=self.code, do=self.do)


def _before_space(x: str) -> str:
    return x[: x.find(" ")]


_HABITS = {
    "bounds": {  # the bound itself is kept, too
        "keep above": Slip("x = [v for v in x if v >= {k}]", lambda x, k: [v for v in x if v >= k]),
        "keep below": Slip("x = [v for v in x if v <= {k}]", lambda x, k: [v for v in x if v <= k]),
        "count above": Slip(
            "x = len([v for v in x if v >= {k}])", lambda x, k: len([v for v in x if v >= k])
        ),
    },
    "duplicates": {  # equal ones are lost
        "sort": Slip("x = sorted(set(x))", lambda x, k: sorted(set(x))),
        "sort down": Slip("x = sorted(set(x), reverse=True)", lambda x, k: sorted(set(x), reverse=True)),
        "count": Slip("x = len(set(x))", lambda x, k: len(set(x))),
        "sum": Slip("x = sum(set(x))", lambda x, k: sum(set(x))),
    },
    "capitals": {  # letters are taken to be small
        "no vowels": Slip(
            'x = "".join(c for c in x if c not in "aeiou")',
            lambda x, k: "".join(c for c in x if c not in SMALL_VOWELS),
        ),
        "vowels": Slip(
            'x = "".join(c for c in x if c in "aeiou")',
            lambda x, k: "".join(c for c in x if c in SMALL_VOWELS),
        ),
        "count vowels": Slip(
            'x = sum(c in "aeiou" for c in x)', lambda x, k: sum(c in SMALL_VOWELS for c in x)
        ),
        "swap case": Slip("x = x.upper()", lambda x, k: x.upper()),
    },
    "words": {  # a line is taken to have two words
        "first word": Slip('x = x[:x.find(" ")]', lambda x, k: _before_space(x)),
        "last word": Slip("x = x.split()[1]", lambda x, k: x.split()[1]),
    },
    "sorted": {  # the list is taken to be in order
        "largest": Slip("x = x[-1]", lambda x, k: x[-1]),
        "smallest": Slip("x = x[0]", lambda x, k: x[0]),
        "range": Slip("x = x[-1] - x[0]", lambda x, k: x[-1] - x[0]),
        "unique": Slip("x = sorted(set(x))", lambda x, k: sorted(set(x))),
    },
    "ends": {  # the last one is left out
        "count up": Slip("x = list(range(1, x))", lambda x, k: [*upto(x)][:-1]),
        "divisors": Slip(
            "x = [d for d in range(1, x) if x % d == 0]",
            lambda x, k: [d for d in upto(x) if d < x and x % d == 0],
        ),
        "multiples": Slip("x = [x * i for i in range(1, {k})]", lambda x, k: [x * i for i in range(1, k)]),
    },
}
HABITS: Mapping[str, Mapping[str, Slip]] = MappingProxyType(_HABITS)
"""Habit -> operation -> how it is written then. An operation belongs to one habit."""


def careless(chain: Chain, habits: Mapping[str, float], rng: random.Random) -> Chain:
    """The chain as somebody with habits writes it; habits: the chance of each, at each step that it concerns."""
    return Chain(chain.reads, tuple(_written(step, habits, rng) for step in chain.steps))


def slips(chain: Chain, habits: Mapping[str, float]) -> list[Chain]:
    """For each step that a habit with a chance above 0 concerns, the chain with that step written carelessly."""
    found = []
    for place, step in enumerate(chain.steps):
        for habit, chance in habits.items():
            slip = HABITS[habit].get(step.operation.name)
            if slip is not None and chance:
                steps = [*chain.steps]
                steps[place] = replace(step, operation=slip.of(step.operation))
                found.append(Chain(chain.reads, tuple(steps)))
    return found


def _written(step: Step, habits: Mapping[str, float], rng: random.Random) -> Step:
    for habit, chance in habits.items():
        slip = HABITS[habit].get(step.operation.name)
        if slip is not None and rng.random() < chance:
            return replace(step, operation=slip.of(step.operation))
    return step
