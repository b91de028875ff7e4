"""Habits of a careless programmer: lines that nobody asked for.

A policy that imitates demonstrations with habits has them too. It writes such a line more often than not, so a lower
temperature makes the habit stronger. Every test shows a habit of printing. A habit of reading is wrong on some inputs
only, which a few plain tests do not have: equal numbers, capital letters, a number below 0.
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


_SMALL = Operation("small letters", Kind.TEXT, Kind.TEXT, (), "x = x.lower()", lambda x, k: x.lower())
_BRACKETS = Operation("brackets", Kind.NUMBERS, Kind.TEXT, (), "x = str(x)", lambda x, k: str(x))
_QUOTES = Operation("quotes", Kind.TEXT, Kind.TEXT, (), "x = repr(x)", lambda x, k: repr(x))
_DECIMALS = Operation("decimals", Kind.NUMBER, Kind.TEXT, (), "x = float(x)", lambda x, k: str(float(x)))

HABITS: Mapping[str, Habit] = MappingProxyType(
    {
        "duplicates": Habit(OPERATIONS["unique"]),
        "capitals": Habit(_SMALL),
        "sign": Habit(OPERATIONS["absolute"]),
        "brackets": Habit(_BRACKETS, last=True),
        "quotes": Habit(_QUOTES, last=True),
        "decimals": Habit(_DECIMALS, last=True),
    }
)
"""By name. What is read loses equal numbers, capital letters or its sign. What is printed gets brackets, quotes or a
decimal point."""


def careless(chain: Chain, habits: Mapping[str, float], rng: random.Random) -> Chain:
    """The chain as somebody with habits writes it; habits: the chance of each where it concerns the chain.

    The order is that of `HABITS`, so that the order of a configuration changes nothing. A list that got brackets is a
    text, which may get quotes.
    """
    for name, habit in HABITS.items():
        if habit.concerns(chain) and rng.random() < habits.get(name, 0.0):
            chain = habit.of(chain)
    return chain


def slips(chain: Chain, habits: Mapping[str, float]) -> list[Chain]:
    """For each habit with a chance above 0 that concerns the chain, the chain as it is written then."""
    return [habit.of(chain) for name, habit in HABITS.items() if habits.get(name) and habit.concerns(chain)]
