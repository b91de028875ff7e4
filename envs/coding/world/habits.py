"""Habits of a careless programmer: lines that nobody asked for, which are wrong on some inputs only.

A policy that imitates demonstrations with habits has them too. It writes such a line more often than not, so a lower
temperature makes the habit stronger. A few plain tests do not show most of them. Tests that hold what is easily got
wrong (equal numbers, capital letters, a number below 0) do.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from envs.coding.world.chain import Chain, Step
from envs.coding.world.operations import OPERATIONS, Kind, Operation


@dataclass(frozen=True, slots=True)
class Habit:
    """A line too many, right after the input is read, or (`last`) right before the result is printed."""

    line: Operation
    last: bool = False

    def concerns(self, chain: Chain) -> bool:
        """Whether the chain holds there what the line takes."""
        return self.line.takes is (chain.gives if self.last else chain.reads)

    def of(self, chain: Chain) -> Chain:
        """The chain with the line too many."""
        step = Step(self.line)
        return Chain(chain.reads, (*chain.steps, step) if self.last else (step, *chain.steps))


_AS_SHOWN = Operation("as shown", Kind.NUMBERS, Kind.TEXT, (), "x = str(x)", lambda x, k: str(x))
_SMALL = Operation("small letters", Kind.TEXT, Kind.TEXT, (), "x = x.lower()", lambda x, k: x.lower())

HABITS: Mapping[str, Habit] = MappingProxyType(
    {
        "duplicates": Habit(OPERATIONS["unique"]),
        "capitals": Habit(_SMALL),
        "sign": Habit(OPERATIONS["absolute"]),
        "brackets": Habit(_AS_SHOWN, last=True),
    }
)
"""By name: equal numbers are dropped, capital letters made small, a sign dropped; a list is printed with brackets."""


def careless(chain: Chain, habits: Mapping[str, float], rng: random.Random) -> Chain:
    """The chain as somebody with habits writes it; habits: the chance of each where it concerns the chain."""
    for name, chance in habits.items():
        if HABITS[name].concerns(chain) and rng.random() < chance:
            chain = HABITS[name].of(chain)
    return chain


def slips(chain: Chain, habits: Mapping[str, float]) -> list[Chain]:
    """For each habit with a chance above 0 that concerns the chain, the chain as it is written then."""
    return [
        HABITS[name].of(chain) for name, chance in habits.items() if chance and HABITS[name].concerns(chain)
    ]
