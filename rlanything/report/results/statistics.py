"""Means with 95 % intervals: a paired hierarchical bootstrap over seeds and tasks, and Holm's correction.

What an interval covers. It is for the mean that would be found with *new training seeds* on *new tasks made the same
way*, evaluation randomness included. Every seed is measured on the same panel of tasks, so seeds and tasks are crossed,
and each replicate has two parts:

- tasks: the panel is resampled with replacement, the same resampled tasks for every seed and for both arms of a
  comparison; the shift is scaled so that its variance is that of the tasks alone, because the noise of single
  episodes already shows in the spread between seeds and would otherwise count twice;
- seeds: the spread of the seeds' values, drawn from Student's t with (seeds - 1) degrees of freedom, the same draw for
  both arms. Resampling three seeds with replacement can never look outside the three values seen, so the plain
  bootstrap's interval holds the truth far less often than it says; `benchmarks/interval_coverage.py` measures both.

With one seed only tasks can be resampled: the interval then says nothing about other training seeds. With one seed and
no tasks (a count) there is no interval. When every outcome is the same the interval has no width.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from rlanything.core.seeds import derive_seed

Floats = NDArray[np.float64]
LEVELS = (0.025, 0.975)


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
    limits: tuple[float, float] = (0.0, 1.0)

    def at(self, seeds: Sequence[int], tasks: Sequence[str]) -> Panel:
        """The panel reduced to `seeds` and `tasks`, in that order; all of them must be there."""
        rows = [self.seeds.index(s) for s in seeds]
        place = {task: i for i, task in enumerate(self.tasks)}
        chosen = np.ix_(range(len(self.hits)), rows, [place[t] for t in tasks])
        return Panel(tuple(seeds), tuple(tasks), self.hits[chosen], self.totals[chosen], self.limits)


@dataclass(frozen=True)
class Estimate:
    """A mean and the ends of its 95 % interval; the ends are None where no interval can be given."""

    mean: float
    low: float | None
    high: float | None


@dataclass(frozen=True)
class Contrast:
    """How far one arm is above another, paired by seed and task; `p` is two-sided and not corrected."""

    difference: Estimate
    p: float | None


@dataclass(frozen=True)
class Draws:
    """The resampling that all arms share.

    `tasks` (resamples, tasks): how often each task was drawn; `student` (resamples,): Student's t draws for the seeds.
    """

    tasks: Floats
    student: Floats


@lru_cache(maxsize=64)
def draws(seed: int, name: str, seeds: int, tasks: int, resamples: int) -> Draws:
    """The draws for a panel of this size; equal arguments give equal draws, which is what pairs two arms."""
    for_tasks = np.random.default_rng(derive_seed(seed, "report.tasks", name, tasks))
    for_seeds = np.random.default_rng(derive_seed(seed, "report.seeds", name, seeds))
    drawn = for_tasks.multinomial(tasks, np.full(tasks, 1.0 / tasks), size=resamples).astype(np.float64)
    return Draws(drawn, _student(seeds - 1, resamples, for_seeds))


def _student(freedom: int, count: int, rng: np.random.Generator, strata: int = 64) -> Floats:
    """`count` draws of Student's t in random order, one from the middle of each of `count` equal strata, symmetric.

    With two degrees of freedom the tails are so heavy that the 95 % ends of plain draws would differ from seed to seed.
    """
    if freedom == 0:
        return np.zeros(count)
    fine = np.sort(rng.standard_t(freedom, size=count * strata)).reshape(count, strata)[:, strata // 2]
    return rng.permutation((fine - fine[::-1]) / 2)


def estimate(panel: Panel, seed: int, name: str, resamples: int) -> Estimate | None:
    """Mean and interval of one arm. None when nothing was measured."""
    panel = _measured([panel])[0]
    if not panel.seeds:
        return None
    point, replicates = sample([(1.0, panel)], _draws_for(panel, seed, name, resamples))
    return _interval(point, replicates, panel, panel.limits)


def contrast(arm: Panel, base: Panel, seed: int, name: str, resamples: int) -> Contrast | None:
    """`arm` minus `base` over the (seed, task) pairs that both have. None when they share none."""
    arm, base = paired(arm, base)
    if not arm.seeds:
        return None
    point, replicates = sample([(1.0, arm), (-1.0, base)], _draws_for(arm, seed, name, resamples))
    limits = (arm.limits[0] - base.limits[1], arm.limits[1] - base.limits[0])
    difference = _interval(point, replicates, arm, limits)
    return Contrast(difference, None if difference.low is None else p_value(replicates))


def paired(arm: Panel, base: Panel) -> tuple[Panel, Panel]:
    """Both panels reduced to the seeds and tasks that they share; a cell that one of them lacks is emptied in both."""
    seeds = [s for s in arm.seeds if s in base.seeds]
    known = set(base.tasks)
    tasks = [t for t in arm.tasks if t in known]
    left, right = arm.at(seeds, tasks), base.at(seeds, tasks)
    both = (left.totals > 0) & (right.totals > 0)
    left, right = _measured([_masked(left, both), _masked(right, both)])
    return left, right


def sample(terms: Sequence[tuple[float, Panel]], drawn: Draws) -> tuple[float, Floats]:
    """The weighted sum of the panels' means, and its replicates (1-d); see the module's docstring."""
    values = _combined(terms, drawn.tasks)
    centre = _combined(terms, np.ones((1, drawn.tasks.shape[1])))[0]
    point = float(centre.mean())
    shift = (values.mean(axis=1) - point) * _task_scale(terms)
    if len(centre) == 1:
        return point, point + shift
    between = drawn.student * centre.std(ddof=1) / np.sqrt(len(centre))
    # Each draw also with its mirror image, so that a - b and b - a have mirrored intervals.
    return point, np.concatenate([point + shift + between, point + shift - between])


def seed_values(panel: Panel, weights: Floats) -> Floats:
    """Value of each seed when task t counts weights[r, t] times: (r, seeds); nan where nothing is left to count."""
    hits = np.einsum("rt,cst->rcs", weights, panel.hits, optimize=True)
    totals = np.einsum("rt,cst->rcs", weights, panel.totals, optimize=True)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray((hits / totals).mean(axis=1))


def p_value(replicates: Floats) -> float:
    """Two-sided: twice the share of replicates on the far side of 0, never below 2 / (replicates + 1)."""
    kept = replicates[np.isfinite(replicates)]
    far = min(int((kept <= 0).sum()), int((kept >= 0).sum()))
    return min(1.0, 2.0 * (far + 1) / (len(kept) + 1))


def holm(p: Mapping[str, float]) -> dict[str, float]:
    """Holm's step-down correction: p-values that hold for all the comparisons together, by the same names."""
    adjusted: dict[str, float] = {}
    floor = 0.0
    for rank, name in enumerate(sorted(p, key=lambda n: (p[n], n))):
        floor = max(floor, min(1.0, (len(p) - rank) * p[name]))
        adjusted[name] = floor
    return {name: adjusted[name] for name in p}


def _draws_for(panel: Panel, seed: int, name: str, resamples: int) -> Draws:
    return draws(seed, name, len(panel.seeds), len(panel.tasks), resamples)


def _measured(panels: Sequence[Panel]) -> list[Panel]:
    """The panels without the seeds for which one of them has a channel with nothing in it."""
    keep = [
        seed
        for i, seed in enumerate(panels[0].seeds)
        if all((panel.totals[:, i].sum(axis=1) > 0).all() for panel in panels)
    ]
    return [panel.at(keep, panel.tasks) for panel in panels]


def _masked(panel: Panel, mask: NDArray[np.bool_]) -> Panel:
    return Panel(panel.seeds, panel.tasks, panel.hits * mask, panel.totals * mask, panel.limits)


def _combined(terms: Sequence[tuple[float, Panel]], weights: Floats) -> Floats:
    return np.asarray(sum(sign * seed_values(panel, weights) for sign, panel in terms))


def _interval(point: float, replicates: Floats, panel: Panel, limits: tuple[float, float]) -> Estimate:
    if len(panel.seeds) == 1 and len(panel.tasks) == 1:
        return Estimate(point, None, None)
    low, high = (float(q) for q in np.clip(np.nanquantile(replicates, LEVELS), *limits))
    # A lopsided resampling must not put the mean outside of its own interval.
    return Estimate(point, min(low, point), max(high, point))


def _task_scale(terms: Sequence[tuple[float, Panel]]) -> float:
    """What the resampled shift is multiplied by: T / (T - 1) for the small panel, less the noise of single cells."""
    cells = sum(sign * _cells(panel) for sign, panel in terms)
    assert isinstance(cells, np.ndarray)
    seeds, tasks = cells.shape
    if tasks == 1:
        return 1.0
    small = tasks / (tasks - 1)
    columns = cells.mean(axis=0)
    between = float(columns.var(ddof=1))
    if seeds == 1 or between == 0.0:
        return float(np.sqrt(small))
    noise = cells - columns - cells.mean(axis=1, keepdims=True) + cells.mean()
    own = float((noise**2).sum()) / ((seeds - 1) * (tasks - 1)) / seeds
    return float(np.sqrt(small * max(0.0, 1.0 - own / between)))


def _cells(panel: Panel) -> Floats:
    """(seeds, tasks): each task's pull on its seed's value (linearised, so that shares and balanced means fit)."""
    totals = panel.totals.sum(axis=2, keepdims=True)
    share = panel.hits.sum(axis=2, keepdims=True) / totals
    pull = len(panel.tasks) * (panel.hits - share * panel.totals) / totals
    return np.asarray((share + pull).mean(axis=0))
