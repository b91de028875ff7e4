"""What each seed says, as a mean with its interval over seeds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import inf
from statistics import mean

from rlanything.report.results import statistics
from rlanything.report.results.statistics import Estimate, Panel

WHOLE = "all"
"""The one cell of a seed in which everything is pooled: rewrites differ between seeds, so they are not paired."""
Values = Mapping[int, Sequence[float]]
"""seed -> values."""
Limits = tuple[float, float]
"""Between which a value can lie; no interval goes beyond."""
SHARES, CHANGES, COUNTS, DISTANCES = (0.0, 1.0), (-1.0, 1.0), (0.0, inf), (0.0, 2.0)


def means(values: Values, limits: Limits) -> Panel | None:
    """The mean of each seed. Seeds without a value are left out; None where all are."""
    import numpy as np

    found = {seed: mean(own) for seed, own in values.items() if own}
    if not found:
        return None
    hits = np.array([[[value] for value in found.values()]])
    return Panel(tuple(found), (WHOLE,), hits, np.ones_like(hits), limits)


def estimate(panel: Panel | None) -> Estimate | None:
    """The mean over seeds. None where nothing was measured."""
    return None if panel is None else statistics.estimate(panel)
