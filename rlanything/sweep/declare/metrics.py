"""The metrics that can be an objective of a sweep: the report's, and the cost."""

from __future__ import annotations

from rlanything.config import Config
from rlanything.report.formatting import interval
from rlanything.report.results.metrics import metrics_for, named
from rlanything.report.results.statistics import Estimate

COST = "cost"
"""Replies sampled while one seed trains: the policy's, and the reward model's."""


def measured_metrics(config: Config) -> list[str]:
    """The metrics that trials with this configuration measure."""
    return [*(metric.name for metric in metrics_for(config)), COST]


def has_curve(metric: str) -> bool:
    """Whether it is also measured during training, so that a pruner can use it."""
    return metric != COST and named(metric).is_share


def is_of_reward_model(metric: str) -> bool:
    """Whether its curve is the reward model's; an arm that does not train it has one point, at the start."""
    return has_curve(metric) and not named(metric).is_success


def sign(metric: str) -> int:
    """+1 where more is better, -1 where less is."""
    return -1 if metric == COST else 1


def display_scale(metric: str) -> float:
    """The factor from a stored value to the displayed one: 100 for shares, 1 for counts and costs."""
    return 1.0 if metric == COST else named(metric).scale


def format_estimate(found: Estimate, metric: str, *, signed: bool = False) -> str:
    """A mean with its interval in displayed units: `55.1 [50.2, 59.9]`; with `signed`: `+2.0 [-1.0, +5.0]`."""
    if metric != COST:
        return interval(found, named(metric), sign=signed)
    form = "{:+,.0f}" if signed else "{:,.0f}"
    mean, *ends = (form.format(round(v) + 0.0) for v in (found.mean, found.low, found.high) if v is not None)
    return f"{mean} [{', '.join(ends)}]" if len(ends) == 2 else mean
