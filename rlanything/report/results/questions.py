"""The questions of a report: which arms are compared with which.

The differences of one question share Holm's correction.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

from rlanything.config import BASE, BASE_COOLED, CONTROLS
from rlanything.report.results.paper import ORDER

OUTCOME = "outcome"
"""The arm that learns from outcomes alone."""
Pair = tuple[str, str]
"""An arm, and the one that it is compared with."""


def over_base(arms: Sequence[str]) -> list[Pair]:
    """What does training gain?"""
    return [(arm, BASE) for arm in arms if arm not in CONTROLS]


def over_cooled(arms: Sequence[str]) -> list[Pair]:
    """What does training gain beyond a lower temperature? Without the control nothing can be compared."""
    return [(arm, BASE_COOLED) for arm in arms if arm not in CONTROLS]


def controls(arms: Sequence[str]) -> list[Pair]:
    """What does a lower temperature alone gain?"""
    return [(arm, BASE) for arm in arms if arm in CONTROLS and arm != BASE]


def beyond_outcome(arms: Sequence[str]) -> list[Pair]:
    """What does an arm gain beyond learning from outcomes alone? [] where `outcome` was not run."""
    return [(arm, OUTCOME) for arm, _ in over_base(arms) if OUTCOME in arms and arm != OUTCOME]


def steps(arms: Sequence[str]) -> list[Pair]:
    """What does each step of the paper's order add, among the arms that were run?"""
    return [(upper, lower) for lower, upper in pairwise(in_order(arms)) if lower != BASE]


def in_order(arms: Sequence[str]) -> list[str]:
    """The paper's order, reduced to these arms."""
    return [arm for arm in ORDER if arm in arms]


def between(arms: Sequence[str]) -> Iterator[tuple[list[Pair], list[Pair]]]:
    """The comparisons that say what each part of the loop adds: those of a question that are shown, and all of them.

    Outcomes over the cooled base; every other arm over outcomes; every step over the one before.
    """
    cooled = over_cooled(arms)
    yield [pair for pair in cooled if pair[0] == OUTCOME], cooled
    for pairs in (beyond_outcome(arms), steps(arms)):
        yield pairs, pairs
