"""Every arm's metrics with their intervals, and their paired differences from the base."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from rlanything.config import BASE, CONTROLS
from rlanything.report.results import questions, statistics
from rlanything.report.results.arms import ordered
from rlanything.report.results.evaluations import Panels
from rlanything.report.results.metrics import Metric
from rlanything.report.results.statistics import Contrast, Estimate


@dataclass(frozen=True)
class Cell:
    """One arm, one metric. `vs_base` is None when nothing pairs with the base; its p is Holm's, over the arms.

    Controls are no arms: their p is corrected among themselves. vs: other arm -> how far this one is above it, for the
    policy's success and the pairs of `questions.between`; p is Holm's over the question.
    """

    value: Estimate
    vs_base: Contrast | None
    vs: Mapping[str, Contrast] = field(default_factory=dict)

    @property
    def difference(self) -> Estimate | None:
        """How far it is above the base."""
        return None if self.vs_base is None else self.vs_base.difference

    @property
    def p(self) -> float | None:
        """The p-value of that."""
        return None if self.vs_base is None else self.vs_base.p


Cells = Mapping[str, Mapping[str, Cell]]
"""arm -> name of a metric -> cell; what was not measured is absent."""


@dataclass(frozen=True)
class Comparison:
    """The measured panels, arm by arm. metrics: those that are compared, in the order of the tables."""

    panels: Panels
    metrics: tuple[Metric, ...]

    @property
    def arms(self) -> list[str]:
        """Arms that were evaluated, in the order of the tables."""
        return ordered(self.panels)

    @property
    def success(self) -> tuple[Metric, ...]:
        """Of these metrics, those of the policy."""
        return tuple(metric for metric in self.metrics if metric.is_success)

    def seeds(self, arm: str) -> list[int]:
        """The training seeds of which something was measured."""
        return sorted({seed for panel in self.panels[arm].values() for seed in panel.seeds})

    def estimate(self, arm: str, metric: Metric) -> Estimate | None:
        """Mean and interval of one arm, or None when it was not measured."""
        return statistics.estimate(self.panels.get(arm, {}).get(metric.name))

    def contrasts(self, pairs: Iterable[tuple[str, str]], metric: Metric) -> dict[tuple[str, str], Contrast]:
        """(arm, other) -> `arm` minus `other`, paired by seed and task, with Holm's p over the pairs that differ.

        Pairs that share nothing measured are absent. Where both have the same results there is nothing to test, so
        there is no p: an arm that trains no reward model has the base's.
        """
        found = {pair: self._contrast(*pair, metric) for pair in pairs}
        return statistics.corrected({pair: c for pair, c in found.items() if c is not None})

    def _contrast(self, arm: str, other: str, metric: Metric) -> Contrast | None:
        upper, lower = (self.panels.get(name, {}).get(metric.name) for name in (arm, other))
        return None if upper is None or lower is None else statistics.tested(upper, lower)

    def cells(self) -> dict[str, dict[str, Cell]]:
        """arm -> name of a metric -> cell, both in the order of the tables; what was not measured is absent."""
        columns = {metric.name: self._column(metric) for metric in self.metrics}
        return {arm: {m: column[arm] for m, column in columns.items() if arm in column} for arm in self.arms}

    def _column(self, metric: Metric) -> dict[str, Cell]:
        values = {arm: found for arm in self.arms if (found := self.estimate(arm, metric)) is not None}
        against = self.contrasts(((arm, BASE) for arm in values if arm not in CONTROLS), metric)
        against |= self.contrasts(questions.controls(list(values)), metric)
        vs = self.between(metric) if metric.is_success else {}
        return {
            arm: Cell(
                value,
                against.get((arm, BASE)),
                {other: c for (upper, other), c in vs.items() if upper == arm},
            )
            for arm, value in values.items()
        }

    def between(self, metric: Metric) -> dict[tuple[str, str], Contrast]:
        """(arm, other) -> `arm` minus `other`, for the pairs that say what each part of the loop adds."""
        found: dict[tuple[str, str], Contrast] = {}
        for shown, question in questions.between(self.arms):
            asked = self.contrasts(question, metric)
            found |= {pair: asked[pair] for pair in shown if pair in asked and pair not in found}
        return found
