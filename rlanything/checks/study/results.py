"""What a finished study found: every hypothesis with its difference and verdict, and every arm's metrics."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from rlanything.checks.study.declare import Hypothesis, Study
from rlanything.checks.study.registration import Registration
from rlanything.checks.study.verdict import Verdict, decide
from rlanything.config import Config
from rlanything.report.results import statistics
from rlanything.report.results.comparison import Comparison
from rlanything.report.results.evaluations import Panels, read_evaluation
from rlanything.report.results.metrics import Metric, metrics_for
from rlanything.report.results.statistics import Contrast, Estimate
from rlanything.runs.layout import Layout


@dataclass(frozen=True)
class Row:
    """One hypothesis. contrast: p is corrected by Holm over all hypotheses; None: not measured."""

    name: str
    hypothesis: Hypothesis
    metric: Metric
    contrast: Contrast | None
    verdict: Verdict


@dataclass(frozen=True)
class Found:
    """Everything that a study found. values: arm -> name of a metric -> mean and interval."""

    study: Study
    registration: Registration
    metrics: tuple[Metric, ...]
    rows: tuple[Row, ...]
    values: Mapping[str, Mapping[str, Estimate]]


def read(root: Path, study: Study, config: Config, registration: Registration) -> Found:
    """What the workspace at `root` holds. Raises `ReportError` for an evaluation that cannot be read."""
    layout = Layout(root)
    panels = {
        name: read_evaluation(layout.evaluation(name), name)
        for name in study.measured
        if layout.evaluation(name).is_file()
    }
    metrics = metrics_for(config)
    comparison = Comparison(panels, metrics)
    values = {
        arm: {
            metric.name: value
            for metric in metrics
            if (value := comparison.estimate(arm, metric)) is not None
        }
        for arm in panels
    }
    return Found(study, registration, metrics, tuple(_rows(study, panels, metrics)), values)


def _rows(study: Study, panels: Panels, metrics: tuple[Metric, ...]) -> list[Row]:
    by_name = {metric.name: metric for metric in metrics}
    contrasts = {name: _contrast(panels, given) for name, given in study.hypotheses.items()}
    corrected = statistics.corrected({name: c for name, c in contrasts.items() if c is not None})
    return [
        Row(
            name,
            given,
            by_name[given.metric],
            corrected.get(name),
            decide(corrected.get(name), study.alpha, study.least(given)),
        )
        for name, given in study.hypotheses.items()
    ]


def _contrast(panels: Panels, given: Hypothesis) -> Contrast | None:
    """How far the hypothesis's arm is above the other, paired by seed and task; p is not corrected."""
    upper, lower = (panels.get(arm, {}).get(given.metric) for arm in (given.arm, given.over))
    return None if upper is None or lower is None else statistics.contrast(upper, lower)
