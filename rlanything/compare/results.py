"""The results of all sides beside each other, and what differs from the first side, tested where seeds or tasks pair.

The p-values are Holm's over every difference of the comparison: all metrics, arms and sides.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from rlanything.compare.side import Arm, Side
from rlanything.core.errors import ConfigError
from rlanything.core.printable import counted
from rlanything.report.results.arms import ordered
from rlanything.report.results.metrics import Metric
from rlanything.report.results.statistics import (
    Contrast,
    Estimate,
    Panel,
    corrected,
    estimate,
    paired,
    same,
    tested,
)


class Why(StrEnum):
    """Why nothing is tested."""

    ONE_SIDE = "measured on one side only"
    ONLY_SUMMARY = "only a summary is recorded"
    OTHER_TASKS = "other tasks"
    NO_SEED = "no seed in common"


@dataclass(frozen=True)
class Pairing:
    """What a test is over: seeds, and tasks of the `every` that the larger panel has. same: all answers are alike.

    tasks and every are None for a metric that is no share of tasks."""

    seeds: int
    tasks: int | None
    every: int | None
    same: bool

    @property
    def partly(self) -> bool:
        """Whether the panels share some of their tasks only."""
        return self.tasks != self.every

    def __str__(self) -> str:
        """In words; there is no test where all answers are alike."""
        if self.same:
            return "the same results"
        seeds = counted(self.seeds, "seed")
        if self.tasks is None:
            return seeds
        return f"{seeds}, {self.tasks}{f' of {self.every}' if self.partly else ''} tasks"


@dataclass(frozen=True)
class Group:
    """What is compared: an arm of each side; None of a side that lacks it. arm: its name, '' where names differ."""

    arm: str
    of: tuple[Arm | None, ...]


@dataclass(frozen=True)
class Difference:
    """A side against the first one, by one metric. found: None where nothing was compared, for the reason in `why`.

    paired_on: seeds and tasks of what was compared. Where both sides have the same results there is no p.
    """

    group: Group
    metric: Metric
    side: int
    found: Contrast | None
    why: Why | None = None
    paired_on: Pairing | None = None

    @property
    def same(self) -> bool:
        """Whether both sides have the same results."""
        return self.paired_on is not None and self.paired_on.same


def groups(sides: Sequence[Side]) -> list[Group]:
    """The arms that are compared. Single arms are compared whatever their names. Raises `ConfigError` for none."""
    if all(len(side.arms) == 1 for side in sides):
        arms = tuple(next(iter(side.arms.values())) for side in sides)
        same = len({arm.name for arm in arms}) == 1
        return [Group(arms[0].name if same else "", arms)]
    names = [name for name in ordered({n for side in sides for n in side.arms}) if _times(name, sides) > 1]
    if not names:
        held = "; ".join(f"{side.label}: {', '.join(side.arms)}" for side in sides)
        raise ConfigError(f"no arm stands in two of the sides, so nothing can be compared. {held}")
    return [Group(name, tuple(side.arms.get(name) for side in sides)) for name in names]


def _times(name: str, sides: Sequence[Side]) -> int:
    return sum(name in side.arms for side in sides)


def value(arm: Arm | None, metric: Metric) -> Estimate | None:
    """The mean of one arm with its interval; what a report recorded where nothing finer is there."""
    if arm is None:
        return None
    panel = arm.panels.get(metric.name)
    return arm.recorded.get(metric.name) if panel is None else estimate(panel)


def differences(found: Sequence[Group], metrics: Sequence[Metric]) -> list[Difference]:
    """Every side against the first one that has the arm, in the order of groups and metrics."""
    rows = [row for group in found for metric in metrics for row in _rows(group, metric)]
    tested = corrected({i: row.found for i, row in enumerate(rows) if row.found is not None})
    return [replace(row, found=tested.get(i)) for i, row in enumerate(rows)]


def first(group: Group) -> int:
    """The number of the side that the others are compared with."""
    return next(i for i, arm in enumerate(group.of) if arm is not None)


def _rows(group: Group, metric: Metric) -> Iterator[Difference]:
    start = first(group)
    for i, arm in enumerate(group.of[start + 1 :], start + 1):
        reference = group.of[start]
        if arm is None or reference is None:
            continue
        if value(reference, metric) is not None or value(arm, metric) is not None:
            yield _difference(group, metric, i, arm, reference)


def _difference(group: Group, metric: Metric, side: int, arm: Arm, reference: Arm) -> Difference:
    pair = [of.panels.get(metric.name) for of in (arm, reference)]
    if any(value(of, metric) is None for of in (arm, reference)):
        return Difference(group, metric, side, None, Why.ONE_SIDE)
    upper, lower = pair
    if upper is None or lower is None:
        return Difference(group, metric, side, None, Why.ONLY_SUMMARY)
    upper = _same_seed(upper, lower)
    if not set(upper.tasks) & set(lower.tasks):
        return Difference(group, metric, side, None, Why.OTHER_TASKS)
    found = tested(upper, lower)
    if found is None:
        return Difference(group, metric, side, None, Why.NO_SEED)
    return Difference(group, metric, side, found, paired_on=_pairing(upper, lower, metric))


def _same_seed(upper: Panel, lower: Panel) -> Panel:
    """One seed of each side is compared task by task, also where they have different numbers."""
    if len(upper.seeds) == len(lower.seeds) == 1:
        return replace(upper, seeds=lower.seeds)
    return upper


def _pairing(upper: Panel, lower: Panel, metric: Metric) -> Pairing:
    """Answers of one frozen model are the same on both sides: then there is nothing to test."""
    left, right = paired(upper, lower)
    if not metric.is_share:
        return Pairing(len(left.seeds), None, None, same(left, right))
    return Pairing(
        len(left.seeds), len(left.tasks), max(len(upper.tasks), len(lower.tasks)), same(left, right)
    )
