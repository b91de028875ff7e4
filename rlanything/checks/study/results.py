"""What a finished study found: every hypothesis with its difference and verdict, and every arm's metrics."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from rlanything.checks.study.declare import Hypothesis, Study
from rlanything.checks.study.registration import Registration
from rlanything.checks.study.rewriting import Part, parts_of
from rlanything.checks.study.verdict import Pair, Tested, Verdict, both_tests
from rlanything.checks.workspace import AGAIN
from rlanything.config import Config
from rlanything.report.contents import Contents, contents_of
from rlanything.report.drawn.arms import Within
from rlanything.report.results.comparison import Comparison
from rlanything.report.results.curves import read_curves
from rlanything.report.results.details import read_extras
from rlanything.report.results.evaluations import Panels, read_evaluation
from rlanything.report.results.metrics import Metric, metrics_for
from rlanything.report.results.statistics import Contrast, Estimate
from rlanything.runs.layout import Layout


@dataclass(frozen=True)
class Row:
    """One hypothesis, with its tests and what follows from them."""

    name: str
    hypothesis: Hypothesis
    metric: Metric
    tested: Tested
    verdict: Verdict

    @property
    def contrast(self) -> Contrast | None:
        """How far its arm is above the other; p is corrected. None: not measured."""
        return self.tested.contrast


@dataclass(frozen=True)
class Found:
    """Everything that a study found. values: arm -> name of a metric -> mean and interval.

    rewriting: arm -> what became of its tasks over time, for the arms that accepted rewrites.
    within: arm -> panel -> success at limits of 1, 2, ... steps, for each seed.
    crashed: arm -> panel -> episodes of its measurement that were left out.
    """

    study: Study
    registration: Registration
    contents: Contents
    metrics: tuple[Metric, ...]
    rows: tuple[Row, ...]
    values: Mapping[str, Mapping[str, Estimate]]
    rewriting: Mapping[str, tuple[Part, ...]]
    within: Within
    crashed: Mapping[str, Mapping[str, int]]

    @property
    def success(self) -> tuple[Metric, ...]:
        """The metrics of the policy's success, one for each of its panels."""
        return tuple(metric for metric in self.metrics if metric.is_success)

    @property
    def signals(self) -> tuple[str, ...]:
        """The arms of the paper's Fig. 6a, where all of them were measured; else none."""
        arms = self.contents.signals
        return arms if all(arm in self.values for arm in arms) else ()


def read(root: Path, study: Study, config: Config, registration: Registration) -> Found:
    """What the workspace at `root` holds. Raises `ReportError` for a result that cannot be read."""
    metrics = metrics_for(config)
    panels = read_panels(root, study, AGAIN)
    rows, values = computed(study, panels, metrics)
    extras = read_extras(root, study.measured, AGAIN)
    return Found(
        study,
        registration,
        contents_of(config),
        metrics,
        rows,
        values,
        parts_of(read_curves(root, panels)),
        extras.within,
        extras.crashed,
    )


def read_panels(root: Path, study: Study, hint: str) -> Panels:
    """The evaluations below `root` of the study's arms that were measured. hint: what to do about a damaged one.

    Raises `ReportError`.
    """
    layout = Layout(root)
    return {
        name: read_evaluation(layout.evaluation(name), name, hint)
        for name in study.measured
        if layout.evaluation(name).is_file()
    }


def computed(
    study: Study, panels: Panels, metrics: tuple[Metric, ...]
) -> tuple[tuple[Row, ...], dict[str, dict[str, Estimate]]]:
    """What follows from the evaluations alone: `rows` and `values` of `Found`."""
    comparison = Comparison(panels, metrics)
    values = {
        arm: {
            metric.name: value
            for metric in metrics
            if (value := comparison.estimate(arm, metric)) is not None
        }
        for arm in panels
    }
    return tuple(_rows(study, panels, metrics)), values


def _rows(study: Study, panels: Panels, metrics: tuple[Metric, ...]) -> list[Row]:
    by_name = {metric.name: metric for metric in metrics}
    pairs = {name: _pair(panels, given) for name, given in study.hypotheses.items()}
    found = both_tests(pairs, {name: study.least(given) for name, given in study.hypotheses.items()})
    return [
        Row(name, given, by_name[given.metric], found[name], found[name].verdict(study.alpha))
        for name, given in study.hypotheses.items()
    ]


def _pair(panels: Panels, given: Hypothesis) -> Pair | None:
    """The results of both arms of a hypothesis; None where one was not measured."""
    upper, lower = (panels.get(arm, {}).get(given.metric) for arm in (given.arm, given.over))
    return None if upper is None or lower is None else (upper, lower)
