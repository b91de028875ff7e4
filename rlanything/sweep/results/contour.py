"""The surface of the first objective over two thresholds, smoothed from the trials."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rlanything.sweep.declare.parameters import Band
from rlanything.sweep.results.points import Point
from rlanything.sweep.trials.board import Board

GRID = 41
"""Points of the surface along each side."""
KERNEL = 0.12
"""Standard deviation of the smoothing, as a share of each side."""
FEWEST = 4
"""With fewer different points there is no contour."""
THRESHOLDS = (
    ("adaptation.alpha_low", "adaptation.alpha_high"),
    ("signals.policy_min", "signals.policy_max"),
    ("signals.reward_min", "signals.reward_max"),
)
"""Pairs of keys that are a lower and an upper threshold."""


@dataclass(frozen=True)
class Contour:
    """The first objective over two thresholds."""

    keys: tuple[str, str]
    trials: tuple[Point, ...]
    """The trials that it is computed from: those that set nothing but keys of the space."""
    x: NDArray[np.float64]
    y: NDArray[np.float64]
    surface: NDArray[np.float64]
    """Smoothed means, [y, x]; nan where no trial is near."""


def contours(board: Board, points: Sequence[Point]) -> list[Contour]:
    """One for every pair of thresholds that both vary, declared as a band or separately."""
    bands = [p.between for p in board.sweep.space.values() if isinstance(p, Band)]
    known = [pair for pair in THRESHOLDS if set(pair) <= set(board.sweep.keys)]
    own = [
        p
        for p in points
        if p.found and board.source(p.number) == p.number and set(p.sets) <= set(board.sweep.keys)
    ]
    found = []
    for low, high in dict.fromkeys([*bands, *known]):
        shown = [p for p in own if {low, high} <= set(p.sets)]
        at = np.array([(p.sets[low], p.sets[high], p.found[0].mean) for p in shown], dtype=np.float64)
        if len({(x, y) for x, y, _ in at}) >= FEWEST and np.ptp(at[:, :2], axis=0).all():
            found.append(_surface((low, high), tuple(shown), at))
    return found


def _surface(keys: tuple[str, str], trials: tuple[Point, ...], at: NDArray[np.float64]) -> Contour:
    """A mean of the trials' means, weighted by a Gaussian of their distance."""
    x, y = (np.linspace(at[:, i].min(), at[:, i].max(), GRID) for i in (0, 1))
    across = np.maximum(np.ptp(at[:, :2], axis=0), 1e-9)
    grid = np.stack(np.meshgrid(x, y), axis=-1)
    distance = (((grid[:, :, None, :] - at[None, None, :, :2]) / across) ** 2).sum(axis=-1)
    weight = np.exp(-distance / (2 * KERNEL**2))
    surface = (weight * at[:, 2]).sum(axis=-1) / weight.sum(axis=-1)
    surface[distance.min(axis=-1) > (2 * KERNEL) ** 2] = np.nan
    return Contour(keys, trials, x, y, surface)
