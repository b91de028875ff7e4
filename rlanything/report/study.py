"""Every number of the report with its interval: arms, their differences from the base, and the peaks of the curves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from rlanything.report import statistics
from rlanything.report.panels import METRICS, Panels
from rlanything.report.records import BASE, Curves, Run, Series, ordered
from rlanything.report.statistics import Contrast, Estimate


@dataclass(frozen=True)
class Cell:
    """One arm, one metric. `vs_base` is None when nothing pairs with the base; `p` is Holm's, over the arms."""

    value: Estimate
    vs_base: Estimate | None
    p: float | None


@dataclass(frozen=True)
class Peak:
    """The best point of an arm's curve: the mean over seeds on the small panel that is measured while training."""

    value: float
    iteration: int
    last: float


@dataclass(frozen=True)
class Study:
    """The measured panels, and how to resample them."""

    panels: Panels
    seed: int
    resamples: int

    @property
    def arms(self) -> list[str]:
        """Arms that were evaluated, in the order of the tables."""
        return ordered(self.panels)

    def seeds(self, arm: str) -> list[int]:
        """The training seeds of which something was measured."""
        return sorted({seed for panel in self.panels[arm].values() for seed in panel.seeds})

    def estimate(self, arm: str, metric: str) -> Estimate | None:
        """Mean and interval of one arm, or None when it was not measured."""
        panel = self.panels.get(arm, {}).get(metric)
        return None if panel is None else statistics.estimate(panel, self.seed, metric, self.resamples)

    def contrast(self, arm: str, other: str, metric: str) -> Contrast | None:
        """`arm` minus `other`, paired, or None when they share nothing measured."""
        upper, lower = (self.panels.get(name, {}).get(metric) for name in (arm, other))
        if upper is None or lower is None:
            return None
        return statistics.contrast(upper, lower, self.seed, metric, self.resamples)

    def cells(self) -> dict[str, dict[str, Cell]]:
        """arm -> metric -> cell, both in the order of the tables; what was not measured is absent."""
        columns = {metric: self._column(metric) for metric in METRICS}
        return {arm: {m: columns[m][arm] for m in METRICS if arm in columns[m]} for arm in self.arms}

    def _column(self, metric: str) -> dict[str, Cell]:
        values = {arm: found for arm in self.arms if (found := self.estimate(arm, metric)) is not None}
        contrasts = {arm: self.contrast(arm, BASE, metric) for arm in values}
        raw = {a: c.p for a, c in contrasts.items() if a != BASE and c is not None and c.p is not None}
        corrected = statistics.holm(raw)
        return {
            arm: Cell(value, None if (c := contrasts[arm]) is None else c.difference, corrected.get(arm))
            for arm, value in values.items()
        }


def mean_series(runs: Mapping[int, Run], key: str) -> Series:
    """iteration -> mean over seeds, at the iterations that every seed of the arm has measured."""
    series = [run.get(key, {}) for run in runs.values()]
    shared = sorted(set(series[0]).intersection(*series[1:])) if series else []
    return {i: float(np.mean([s[i] for s in series])) for i in shared}


def peaks(curves: Curves, metrics: Sequence[str]) -> dict[str, dict[str, Peak]]:
    """arm -> metric -> peak, for those of `metrics` that have a curve."""
    found = {arm: {m: p for m in metrics if (p := _peak(runs, m))} for arm, runs in curves.items()}
    return {arm: row for arm, row in found.items() if row}


def _peak(runs: Mapping[int, Run], metric: str) -> Peak | None:
    series = mean_series(runs, f"panel/{metric}")
    if len(series) < 2:  # a single measurement is no curve
        return None
    best = max(series, key=lambda i: (series[i], -i))
    return Peak(series[best], best, series[max(series)])
