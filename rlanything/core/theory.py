"""What the paper's two theorems say about a run, computed from its votes and logged every iteration."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from math import comb, exp, inf, nan, sqrt


@dataclass(frozen=True, slots=True)
class Precision:
    """p+ = P(S=+1 | step of a success), p- = P(S=-1 | step of a failure); nan where no such step was seen."""

    p_plus: float
    p_minus: float

    @property
    def mu(self) -> float:
        """mu = p+ + p-; Theorem 1: more votes help exactly when mu > 1."""
        return self.p_plus + self.p_minus


def precision(votes: Sequence[tuple[int, int]]) -> Precision:
    """From (outcome of the trajectory, verdict) pairs of valid votes."""
    good = [v for o, v in votes if o == 1]
    bad = [v for o, v in votes if o == -1]
    return Precision(
        sum(v == 1 for v in good) / len(good) if good else nan,
        sum(v == -1 for v in bad) / len(bad) if bad else nan,
    )


def empirical_precision(success: Sequence[float], failure: Sequence[float]) -> float:
    """A: share of (step of a success, step of a failure) pairs whose mean votes are ordered rightly; ties fail."""
    if not success or not failure:
        return nan
    ranked = sorted(failure)
    return sum(bisect_left(ranked, s) for s in success) / (len(success) * len(failure))


def exact_precision(p_plus: float, p_minus: float, m: int) -> float:
    """A for m independent votes a step: P(Binomial(m, p+) > Binomial(m, 1 - p-)); ties count as failures."""
    up = [_binomial(m, k, p_plus) for k in range(m + 1)]
    down = [_binomial(m, k, 1.0 - p_minus) for k in range(m + 1)]
    return sum(up[i] * down[j] for i in range(m + 1) for j in range(i))


def precision_bound(mu: float, m: int) -> float:
    """Theorem 1: A >= 1 - exp(-m (mu - 1)^2 / 4) when mu > 1; 0 (no promise) otherwise."""
    return 1.0 - exp(-m * (mu - 1.0) ** 2 / 4.0) if mu > 1.0 else 0.0


def force_ratio(votes: Sequence[tuple[int, int]]) -> float:
    """||f+|| / ||f-|| of Theorem 2 over (outcome, verdict) pairs: how the RM's objective is split.

    f+ = p_old(S=+1) 1(O=+1), f- = p_old(S=-1) 1(O=-1), with p_old estimated by the votes themselves.
    """
    plus = sum(o == 1 and v == 1 for o, v in votes)
    minus = sum(o == -1 and v == -1 for o, v in votes)
    if not plus and not minus:
        return nan
    return sqrt(plus) / sqrt(minus) if minus else inf


def _binomial(n: int, k: int, p: float) -> float:
    return comb(n, k) * p**k * (1.0 - p) ** (n - k)
