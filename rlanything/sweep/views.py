"""What the page and the report show, gathered once: both draw from the same numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from optuna.trial import TrialState

from rlanything.report.statistics import Estimate
from rlanything.sweep.board import Board
from rlanything.sweep.declare import Band, Value, sign
from rlanything.sweep.importance import importances
from rlanything.sweep.space import outside
from rlanything.sweep.table import Confirmed, Difference, confirmation, differences

GRID = 41
"""Points of the contour along each side."""
KERNEL = 0.12
"""Width of the smoothing behind the contour, as a share of each side."""
FEWEST = 4
"""Different places below which there is no contour."""
THRESHOLDS = (
    ("adaptation.alpha_low", "adaptation.alpha_high"),
    ("signals.policy_min", "signals.policy_max"),
    ("signals.reward_min", "signals.reward_max"),
)
"""Keys that are a lower and an upper threshold."""


@dataclass(frozen=True)
class Point:
    """A trial as it is drawn. `found`: an estimate for every objective; empty for a trial without a result."""

    number: int
    label: str
    state: str
    sets: Mapping[str, Value]
    found: tuple[Estimate, ...] = ()
    difference: Difference | None = None
    band_coverage: float | None = None
    accepted: Estimate | None = None

    @property
    def name(self) -> str:
        """`3`, or `0 (paper)`."""
        return f"{self.number} ({self.label})" if self.label else str(self.number)


@dataclass(frozen=True)
class Contour:
    """The first objective over two thresholds: a smooth surface (nan where no trial is near) over `x` and `y`.

    trials: those that it is made of. The paper's point is none where it sets what the others leave alone.
    """

    keys: tuple[str, str]
    trials: tuple[Point, ...]
    x: NDArray[np.float64]
    y: NDArray[np.float64]
    surface: NDArray[np.float64]


@dataclass(frozen=True)
class Views:
    """Everything that is shown of a sweep."""

    name: str
    objectives: tuple[str, ...]
    metrics: tuple[str, ...]
    points: tuple[Point, ...]
    best: int | None
    front: tuple[int, ...]
    importances: Mapping[str, Estimate]
    contours: tuple[Contour, ...]
    fresh: tuple[Confirmed, ...]

    @property
    def finished(self) -> list[Point]:
        """The trials with a result."""
        return [p for p in self.points if p.found]

    @property
    def keys(self) -> list[str]:
        """The keys that differ between trials; some may be set by the paper's point alone."""
        names = dict.fromkeys(key for point in self.points for key in point.sets)
        return [name for name in names if len({repr(p.sets.get(name)) for p in self.points}) > 1]

    @property
    def varied(self) -> list[str]:
        """Those of `keys` that every trial sets."""
        return [key for key in self.keys if all(key in p.sets for p in self.points)]

    def leader(self) -> list[tuple[int, float]]:
        """(trial, best mean so far) after each finished trial."""
        way, best, line = sign(self.metrics[0]), None, []
        for point in self.finished:
            mean = point.found[0].mean
            best = mean if best is None or way * mean > way * best else best
            line.append((point.number, best))
        return line


def views(board: Board, name: str) -> Views:
    """Gather everything from a sweep."""
    goals = board.sweep.goals
    points = _points(board)
    best = board.best()
    return Views(
        name,
        board.sweep.objectives,
        tuple(metric for _, metric in goals),
        tuple(points),
        None if best is None else best.number,
        _front(points, [metric for _, metric in goals]),
        _importances(board),
        tuple(_contours(board, points)),
        tuple(confirmation(board)),
    )


def _points(board: Board) -> list[Point]:
    against = differences(board)
    arm = board.sweep.goals[0][0]
    found = []
    for trial in board.study.trials():
        number, state = trial.number, trial.state.name.lower()
        sets, label = trial.user_attrs.get("sets", {}), trial.user_attrs.get("label", "")
        if trial.state == TrialState.PRUNED:
            state = f"pruned after {len(trial.intermediate_values)} points"
        if trial.state != TrialState.COMPLETE:
            found.append(Point(number, label, state, sets))
            continue
        measured = board.measured(number)
        estimates = tuple(e for goal in board.sweep.goals if (e := measured.estimate(goal)) is not None)
        accepted = measured.estimate((arm, "accepted_tasks"))
        coverage = measured.band_coverage[arm]
        found.append(Point(number, label, state, sets, estimates, against.get(number), coverage, accepted))
    return found


def _front(points: Sequence[Point], metrics: Sequence[str]) -> tuple[int, ...]:
    """Trials that no other is at least as good as in every objective and better in one (by their means)."""
    ways = np.array([sign(metric) for metric in metrics])
    finished = [p for p in points if p.found]
    if not finished:
        return ()
    values = np.array([[e.mean for e in p.found] for p in finished]) * ways
    kept = [
        p.number
        for p, v in zip(finished, values, strict=True)
        if not any((values >= v).all(axis=1) & (values > v).any(axis=1))
    ]
    return tuple(kept)


def _importances(board: Board) -> Mapping[str, Estimate]:
    """Of each point once: a trial that took over another's result says nothing more."""
    goal = board.sweep.goals[0]
    trials = [t for t in board.complete() if _own(board, t.number) and not outside(board.sweep, t.user_attrs)]
    means = [t.values[0] for t in trials]
    errors = [board.measured(t.number).error(goal) for t in trials]
    return importances(trials, means, errors, sign(goal[1]))


def _own(board: Board, number: int) -> bool:
    """Whether the trial was run, and took over no other one's result."""
    return board.source(number) == number


def _contours(board: Board, points: Sequence[Point]) -> list[Contour]:
    """One for every pair of thresholds that both vary, declared as a band or each by itself."""
    bands = [p.between for p in board.sweep.space.values() if isinstance(p, Band)]
    known = [pair for pair in THRESHOLDS if set(pair) <= set(board.sweep.keys)]
    own = [p for p in points if p.found and _own(board, p.number) and set(p.sets) <= set(board.sweep.keys)]
    found = []
    for low, high in dict.fromkeys([*bands, *known]):
        shown = [p for p in own if {low, high} <= set(p.sets)]
        at = np.array([(p.sets[low], p.sets[high], p.found[0].mean) for p in shown], dtype=np.float64)
        if len({(x, y) for x, y, _ in at}) >= FEWEST and np.ptp(at[:, :2], axis=0).all():
            found.append(_surface((low, high), tuple(shown), at))
    return found


def _surface(keys: tuple[str, str], trials: tuple[Point, ...], at: NDArray[np.float64]) -> Contour:
    """A Gaussian-weighted mean of the trials' means; empty where even the nearest trial is far away."""
    x, y = (np.linspace(at[:, i].min(), at[:, i].max(), GRID) for i in (0, 1))
    across = np.maximum(np.ptp(at[:, :2], axis=0), 1e-9)
    grid = np.stack(np.meshgrid(x, y), axis=-1)
    distance = (((grid[:, :, None, :] - at[None, None, :, :2]) / across) ** 2).sum(axis=-1)
    weight = np.exp(-distance / (2 * KERNEL**2))
    surface = (weight * at[:, 2]).sum(axis=-1) / weight.sum(axis=-1)
    surface[distance.min(axis=-1) > (2 * KERNEL) ** 2] = np.nan
    return Contour(keys, trials, x, y, surface)
