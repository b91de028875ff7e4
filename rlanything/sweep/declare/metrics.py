"""The metrics that can be an objective of a sweep: the report's, and the cost."""

from __future__ import annotations

from rlanything.config import Config
from rlanything.report.formatting import interval
from rlanything.report.results.metrics import METRICS as MEASURED
from rlanything.report.results.metrics import SUCCESS, metrics_for
from rlanything.report.results.statistics import Estimate

COST = "cost"
"""Replies sampled while one seed trains: the policy's, and the reward model's."""
METRICS = (*MEASURED, COST)
"""Every metric, of either kind of reward model."""
CURVES = tuple(name for name, metric in MEASURED.items() if metric.is_share)
"""Metrics that are also measured during training, so that a pruner can use them."""
REWARD_CURVES = tuple(name for name in CURVES if MEASURED[name] not in SUCCESS)
"""Those of the reward model; an arm that does not train it has them at the start only."""


def measured_metrics(config: Config) -> list[str]:
    """The metrics that trials with this configuration measure."""
    return [*(metric.name for metric in metrics_for(config.judge.writes)), COST]


def sign(metric: str) -> int:
    """+1 where more is better, -1 where less is."""
    return -1 if metric == COST else 1


def display_scale(metric: str) -> float:
    """The factor from a stored value to the displayed one: 100 for shares, 1 for counts and costs."""
    return 1.0 if metric == COST else MEASURED[metric].scale


def format_estimate(found: Estimate, metric: str, *, signed: bool = False) -> str:
    """A mean with its interval in displayed units: `55.1 [50.2, 59.9]`; with `signed`: `+2.0 [-1.0, +5.0]`."""
    if metric != COST:
        return interval(found, MEASURED[metric], sign=signed)
    form = "{:+,.0f}" if signed else "{:,.0f}"
    mean, *ends = (form.format(round(v) + 0.0) for v in (found.mean, found.low, found.high) if v is not None)
    return f"{mean} [{', '.join(ends)}]" if len(ends) == 2 else mean
