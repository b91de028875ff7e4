"""Every arm's metrics with their intervals, and their paired differences from the base."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from rlanything.config import BASE
from rlanything.report.results import statistics
from rlanything.report.results.arms import ordered
from rlanything.report.results.evaluations import Panels
from rlanything.report.results.metrics import METRICS, Metric
from rlanything.report.results.statistics import Contrast, Estimate


@dataclass(frozen=True)
class Cell:
    """One arm, one metric. `vs_base` is None when nothing pairs with the base; `p` is Holm's, over the arms."""

    value: Estimate
    vs_base: Estimate | None
    p: float | None


Cells = Mapping[str, Mapping[str, Cell]]
"""arm -> name of a metric -> cell; what was not measured is absent."""


@dataclass(frozen=True)
class Comparison:
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

    def estimate(self, arm: str, metric: Metric) -> Estimate | None:
        """Mean and interval of one arm, or None when it was not measured."""
        panel = self.panels.get(arm, {}).get(metric.name)
        return None if panel is None else statistics.estimate(panel, self.seed, metric.name, self.resamples)

    def contrast(self, arm: str, other: str, metric: Metric) -> Contrast | None:
        """`arm` minus `other`, paired, or None when they share nothing measured."""
        upper, lower = (self.panels.get(name, {}).get(metric.name) for name in (arm, other))
        if upper is None or lower is None:
            return None
        return statistics.contrast(upper, lower, self.seed, metric.name, self.resamples)

    def cells(self) -> dict[str, dict[str, Cell]]:
        """arm -> name of a metric -> cell, both in the order of the tables; what was not measured is absent."""
        columns = {name: self._column(metric) for name, metric in METRICS.items()}
        return {arm: {m: columns[m][arm] for m in METRICS if arm in columns[m]} for arm in self.arms}

    def _column(self, metric: Metric) -> dict[str, Cell]:
        values = {arm: found for arm in self.arms if (found := self.estimate(arm, metric)) is not None}
        contrasts = {arm: self.contrast(arm, BASE, metric) for arm in values}
        raw = {a: c.p for a, c in contrasts.items() if a != BASE and c is not None and c.p is not None}
        corrected = statistics.holm(raw)
        return {
            arm: Cell(value, None if (c := contrasts[arm]) is None else c.difference, corrected.get(arm))
            for arm, value in values.items()
        }
