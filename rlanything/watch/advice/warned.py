"""A warning, and the kinds of checks that several metrics share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import fmean

from rlanything.watch.tolerant import Row

LAST = 3
"""Iterations that a problem must last: one iteration has few tasks, and its numbers jump."""


UNIT_TESTS = ("ut", "detect")
"""Metrics of written tests on a panel."""


@dataclass(frozen=True)
class Warned:
    """A warning. text: what is seen. todo: what to do about it."""

    kind: str
    text: str
    todo: str


Check = Callable[[Sequence[Row]], Warned | None]


def last(rows: Sequence[Row], key: str) -> list[float]:
    """A metric in the last iterations; [] unless it was measured in all of them."""
    found = [value for row in rows[-LAST:] if (value := row.get(key)) is not None]
    return found if len(found) == LAST else []


def is_policy_panel(key: str) -> bool:
    """Whether a metric is the policy's success on a panel, and not a number of the reward model on one."""
    parts = key.split("/")
    return (
        len(parts) == 2
        and parts[0] == "panel"
        and not parts[1].startswith("rm_")
        and parts[1] not in UNIT_TESTS
    )


def share_of(kind: str, key: str, most: float, what: str, todo: str) -> Check:
    """A check of a metric whose mean over the last iterations must not be above `most`. what: has a place for it."""

    def check(rows: Sequence[Row]) -> Warned | None:
        found = last(rows, key)
        return Warned(kind, what.format(fmean(found)), todo) if found and fmean(found) > most else None

    return check
