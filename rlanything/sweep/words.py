"""How the numbers of a sweep are written: accuracies in percent, counts and costs as they are."""

from __future__ import annotations

from rlanything.report.statistics import Estimate
from rlanything.report.words import COUNTS
from rlanything.sweep.declare import COST


def scale(metric: str) -> float:
    """What a value is multiplied by to be shown."""
    return 1.0 if metric in (COST, *COUNTS) else 100.0


def number(found: Estimate, metric: str, *, signed: bool = False) -> str:
    """A mean with its interval in the metric's unit: `55.1 [50.2, 59.9]`."""
    digits = 0 if metric == COST else 1

    def one(value: float) -> str:
        shown = round(scale(metric) * value, digits) + 0.0
        return f"{shown:{'+' if signed else ''},.{digits}f}"

    if found.low is None or found.high is None:
        return one(found.mean)
    return f"{one(found.mean)} [{one(found.low)}, {one(found.high)}]"
