"""Means with 95 % intervals from crossed random effects of seeds and tasks, and Holm's correction.

What an interval covers. It is for the mean that would be found with *new training seeds* on *new tasks made the same
way*, evaluation randomness included. Every seed is measured on the same panel of tasks, so seeds and tasks are crossed:

    value of a cell = mean + seed + task + rest        (the rest: this seed on this task, and the luck of its episodes)

The mean squares of the analysis of variance give the variance of the mean, and Satterthwaite's approximation the
degrees of freedom of its Student's t. A mean square of seeds (or tasks) below that of the rest is taken as large as the
rest: three seeds that agree by chance do not make an interval narrow. `benchmarks/interval_coverage.py` measures how
often the interval holds the truth, also when the seeds agree by chance, beside two other methods.

A difference of two arms is that of their cells, so that what the arms share cancels. With one seed the interval is over
tasks only: it says nothing about other training seeds. With one seed and no tasks (a count) there is no interval. Nor
is there one, or a p, where nothing varies: cells that agree do not say how far others would lie from them. Two zeros
have an interval that ends there: the difference of equal results, and a count of what no seed did.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf, isfinite, sqrt
from statistics import mean as mean_of
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtr, stdtrit

Floats = NDArray[np.float64]
Name = TypeVar("Name")
Limits = tuple[float, float]
"""Between which a value can lie; no interval goes beyond."""
SHARES: Limits = (0.0, 1.0)
COUNTS: Limits = (0.0, inf)
ONE_CELL = "run"
"""The only cell of a seed whose values are pooled: what is counted differs between seeds, so it cannot be paired."""
ROUNDING = 1e-12
"""Cells that differ by less, as a share of the largest, are equal."""
LEVEL = 0.05
"""A difference with a corrected p below it is called clear."""


@dataclass(frozen=True)
class Panel:
    """One metric of one arm: `hits` of `totals`, each of shape (channels, seeds, tasks).

    A seed's value is the mean over channels of its pooled share, sum of hits / sum of totals: one channel for an
    accuracy, two (good and bad steps) for the balanced accuracy of the reward model.
    """

    seeds: tuple[int, ...]
    tasks: tuple[str, ...]
    hits: Floats
    totals: Floats
    limits: Limits = SHARES

    def at(self, seeds: Sequence[int], tasks: Sequence[str]) -> Panel:
        """The panel reduced to `seeds` and `tasks`, in that order; all of them must be there."""
        rows = [self.seeds.index(s) for s in seeds]
        place = {task: i for i, task in enumerate(self.tasks)}
        chosen = np.ix_(range(len(self.hits)), rows, [place[t] for t in tasks])
        return Panel(tuple(seeds), tuple(tasks), self.hits[chosen], self.totals[chosen], self.limits)


@dataclass(frozen=True)
class Estimate:
    """A mean and the ends of its 95 % interval; both ends are None where no interval can be given."""

    mean: float
    low: float | None
    high: float | None


@dataclass(frozen=True)
class Contrast:
    """How far one arm is above another, paired by seed and task; `p` is two-sided, and not corrected unless said."""

    difference: Estimate
    p: float | None

    @property
    def clear(self) -> bool:
        """Whether p is below `LEVEL`."""
        return self.p is not None and self.p < LEVEL


@dataclass(frozen=True)
class Spread:
    """How uncertain a mean is: the variance of the mean, and the degrees of freedom of that variance."""

    variance: float
    freedom: float


def seed_means(values: Mapping[int, Sequence[float]], limits: Limits) -> Panel | None:
    """The mean of each seed's values, which are pooled: tasks are not kept apart, so intervals are over seeds.

    values: by seed. Seeds without a value are left out; None where all are.
    """
    found = {seed: mean_of(own) for seed, own in values.items() if own}
    if not found:
        return None
    hits = np.array([[[value] for value in found.values()]], dtype=np.float64)
    return Panel(tuple(found), (ONE_CELL,), hits, np.ones_like(hits), limits)


def estimate(panel: Panel | None) -> Estimate | None:
    """Mean and interval of one arm. None when nothing was measured."""
    if panel is None:
        return None
    panel = _measured([panel])[0]
    if not panel.seeds:
        return None
    found = _interval(_cells(panel), panel.limits)
    # A share that is 0 on every task need not be 0 on others, no more than one that is 1.
    is_share = isfinite(panel.limits[1])
    return replace(found, low=None, high=None) if is_share and found.low == found.high else found


def standard_error(panel: Panel) -> float:
    """Standard error of an arm's mean; 0 where it cannot be known, or nothing was measured."""
    panel = _measured([panel])[0]
    found = spread(_cells(panel)) if panel.seeds else None
    return 0.0 if found is None else sqrt(found.variance)


def differences(arm: Panel, base: Panel) -> Floats | None:
    """`arm` minus `base`, (seeds, tasks): those that both have. None when they share none."""
    arm, base = paired(arm, base)
    return _cells(arm) - _cells(base) if arm.seeds else None


def contrast(arm: Panel, base: Panel) -> Contrast | None:
    """`arm` minus `base` over the (seed, task) pairs that both have. None when they share none."""
    cells = differences(arm, base)
    if cells is None:
        return None
    limits = (arm.limits[0] - base.limits[1], arm.limits[1] - base.limits[0])
    return Contrast(_interval(cells, limits), p_value(cells))


def tested(arm: Panel, base: Panel) -> Contrast | None:
    """`contrast`, without p where both hold the same answers: then there is nothing to test."""
    found = contrast(arm, base)
    return replace(found, p=None) if found is not None and same(*paired(arm, base)) else found


def paired(arm: Panel, base: Panel) -> tuple[Panel, Panel]:
    """Both panels reduced to the seeds and tasks that they share; a cell that one of them lacks is emptied in both."""
    seeds = [s for s in arm.seeds if s in base.seeds]
    known = set(base.tasks)
    tasks = [t for t in arm.tasks if t in known]
    left, right = arm.at(seeds, tasks), base.at(seeds, tasks)
    both = (left.totals > 0) & (right.totals > 0)
    left, right = _measured([_masked(left, both), _masked(right, both)])
    return left, right


def same(arm: Panel, base: Panel) -> bool:
    """Whether two panels of `paired` hold the same answers, as those of one model that both arms have."""
    return np.array_equal(arm.hits, base.hits) and np.array_equal(arm.totals, base.totals)


def spread(cells: Floats) -> Spread | None:
    """How uncertain the mean of cells (seeds, tasks) is. None for a single cell, a variance of 0 where all are equal.

    Searle, Casella and McCulloch, Variance Components (1992), chapter 4: the expected mean squares of a two-way crossed
    model; Satterthwaite (1946).
    """
    seeds, tasks = cells.shape
    if cells.size == 1:
        return None
    if np.ptp(cells) <= ROUNDING * np.abs(cells).max():
        return Spread(0.0, 1.0)
    if min(cells.shape) == 1:
        return Spread(float(cells.var(ddof=1)) / cells.size, cells.size - 1)
    mean, rows, columns = cells.mean(), cells.mean(axis=1), cells.mean(axis=0)
    rest_freedom = (seeds - 1) * (tasks - 1)
    rest = float(((cells - rows[:, None] - columns + mean) ** 2).sum()) / rest_freedom
    of_seeds = max(rest, tasks * float(rows.var(ddof=1)))
    of_tasks = max(rest, seeds * float(columns.var(ddof=1)))
    total = of_seeds + of_tasks - rest
    doubt = of_seeds**2 / (seeds - 1) + of_tasks**2 / (tasks - 1) + rest**2 / rest_freedom
    return Spread(total / cells.size, max(1.0, total**2 / doubt) if doubt else 1.0)


def p_value(cells: Floats) -> float | None:
    """Two-sided p of the mean of cells (seeds, tasks) being 0. None for a single cell.

    Where nothing varies, 1 for a mean of 0, and None for another one: that cells agree is no proof.
    """
    found, mean = spread(cells), float(cells.mean())
    if found is None:
        return None
    if found.variance == 0.0:
        return 1.0 if mean == 0.0 else None
    return float(2.0 * stdtr(found.freedom, -abs(mean) / sqrt(found.variance)))


def holm(p: Mapping[Name, float]) -> dict[Name, float]:
    """Holm's step-down correction: p-values that hold for all the comparisons together, by the same names."""
    adjusted: dict[Name, float] = {}
    floor = 0.0
    for rank, name in enumerate(sorted(p, key=lambda n: p[n])):
        floor = max(floor, min(1.0, (len(p) - rank) * p[name]))
        adjusted[name] = floor
    return {name: adjusted[name] for name in p}


def corrected(contrasts: Mapping[Name, Contrast]) -> dict[Name, Contrast]:
    """The contrasts of one question with Holm's p in place of their own; those without p keep none."""
    adjusted = holm({name: c.p for name, c in contrasts.items() if c.p is not None})
    return {name: replace(c, p=adjusted.get(name)) for name, c in contrasts.items()}


def _interval(cells: Floats, limits: Limits) -> Estimate:
    found, mean = spread(cells), float(cells.mean())
    if found is None or (found.variance == 0.0 and mean != 0.0):
        return Estimate(mean, None, None)
    half = float(stdtrit(found.freedom, 1.0 - LEVEL / 2)) * sqrt(found.variance)
    # Rounding must not put the mean outside of its own interval.
    low, high = max(limits[0], mean - half), min(limits[1], mean + half)
    return Estimate(mean, min(low, mean), max(high, mean))


def measured_seeds(panel: Panel) -> list[int]:
    """The seeds that have a value: something in every channel."""
    return [seed for i, seed in enumerate(panel.seeds) if (panel.totals[:, i].sum(axis=1) > 0).all()]


def _measured(panels: Sequence[Panel]) -> list[Panel]:
    """The panels with the seeds for which all of them have a value, and without empty tasks.

    A task in which one of them has nothing at all would count as one that lies exactly at the mean.
    """
    found = [measured_seeds(panel) for panel in panels]
    keep = [seed for seed in panels[0].seeds if all(seed in seeds for seeds in found)]
    kept = [panel.at(keep, panel.tasks) for panel in panels]
    there = np.all([panel.totals.sum(axis=(0, 1)) > 0 for panel in kept], axis=0)
    tasks = [task for task, measured in zip(panels[0].tasks, there, strict=True) if measured]
    return [panel.at(keep, tasks) for panel in kept]


def _masked(panel: Panel, mask: NDArray[np.bool_]) -> Panel:
    return Panel(panel.seeds, panel.tasks, panel.hits * mask, panel.totals * mask, panel.limits)


def _cells(panel: Panel) -> Floats:
    """(seeds, tasks): each task's pull on its seed's value (linearised, so that shares and balanced means fit).

    A row's mean is the seed's value, whatever the totals of its tasks.
    """
    totals = panel.totals.sum(axis=2, keepdims=True)
    share = panel.hits.sum(axis=2, keepdims=True) / totals
    pull = len(panel.tasks) * (panel.hits - share * panel.totals) / totals
    return np.asarray((share + pull).mean(axis=0))
