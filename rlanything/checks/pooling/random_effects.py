"""A mean over experiments whose true differences may differ: a random-effects meta-analysis.

    difference found in experiment i = mean + what is special to i (sd tau) + error of i (known variance)

tau is Paule and Mandel's (1982): with it the weighted squares of the differences are as large as expected. The interval
is that of Hartung and Knapp (2001), Student's t with k - 1 degrees of freedom, and never narrower than with tau = 0 and
known variances (the usual modification: experiments that agree by chance do not make it narrow).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.special import stdtr, stdtrit

from rlanything.report.results.statistics import LEVEL, Estimate

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Pooled:
    """The mean over experiments with its 95 % interval. p: two-sided, of the mean being 0.

    tau: standard deviation of the true differences between experiments.
    """

    mean: Estimate
    p: float
    tau: float


def pooled(means: Sequence[float], variances: Sequence[float]) -> Pooled:
    """The mean of at least two experiments, from the difference of each and the variance of that difference.

    Raises `ValueError` for fewer, and for a variance that is not above 0.
    """
    found, errors = (np.array(values, dtype=np.float64) for values in (means, variances))
    if len(found) < 2 or len(found) != len(errors):
        raise ValueError(f"{len(found)} differences with {len(errors)} variances: at least two are pooled")
    if not (errors > 0).all():
        raise ValueError(f"a variance of {errors.min()} is not above 0")
    freedom = len(found) - 1
    square = _between(found, errors)
    weights = 1.0 / (errors + square)
    mean = float(weights @ found / weights.sum())
    error = sqrt(max(1.0, _excess(square, found, errors) / freedom + 1.0) / weights.sum())
    half = float(stdtrit(freedom, 1.0 - LEVEL / 2)) * error
    p = float(2.0 * stdtr(freedom, -abs(mean) / error))
    return Pooled(Estimate(mean, mean - half, mean + half), p, sqrt(square))


def _between(means: Floats, variances: Floats) -> float:
    """tau squared; 0 where the differences vary no more than their errors explain."""
    if _excess(0.0, means, variances) <= 0.0:
        return 0.0
    most = float(np.square(means - means.mean()).sum())  # with it no weighted square is above its share
    return float(brentq(_excess, 0.0, most, args=(means, variances)))


def _excess(square: float, means: Floats, variances: Floats) -> float:
    """How far the weighted squares are above what is expected of them, k - 1."""
    weights = 1.0 / (variances + square)
    centre = weights @ means / weights.sum()
    return float(weights @ np.square(means - centre)) - (len(means) - 1)
