"""The quantities of the paper's two theorems, computed from a run's votes and logged every iteration."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from math import exp, inf, isnan, nan, sqrt
from statistics import median


@dataclass(frozen=True, slots=True)
class Precision:
    """p+ = P(S=+1 | step of a success), p- = P(S=-1 | step of a failure); nan where no such step was seen."""

    p_plus: float
    p_minus: float

    @property
    def mu(self) -> float:
        """mu = p+ + p-. Theorem 1: more votes a step help exactly when mu > 1."""
        return self.p_plus + self.p_minus


def precision(votes: Sequence[tuple[int, int]]) -> Precision:
    """p+ and p- from the valid votes, given as pairs (outcome of the trajectory, verdict)."""
    good = [v for o, v in votes if o == 1]
    bad = [v for o, v in votes if o == -1]
    return Precision(
        sum(v == 1 for v in good) / len(good) if good else nan,
        sum(v == -1 for v in bad) / len(bad) if bad else nan,
    )


def empirical_precision(success: Sequence[float], failure: Sequence[float]) -> float:
    """A: share of pairs (step of a success, step of a failure) in which the first has the higher mean vote.

    success, failure: the mean votes of the steps. nan where one is empty."""
    if not success or not failure:
        return nan
    ranked = sorted(failure)
    return sum(bisect_left(ranked, s) for s in success) / (len(success) * len(failure))


def precision_bound(mu: float, m: int) -> float:
    """Theorem 1: A >= 1 - exp(-m (mu - 1)^2 / 4) when mu > 1; otherwise 0, which bounds nothing."""
    return 1.0 - exp(-m * (mu - 1.0) ** 2 / 4.0) if mu > 1.0 else 0.0


@dataclass(frozen=True, slots=True)
class Forces:
    """||f+|| and ||f-|| of Theorem 2 for one task: how much its successes and its failures teach the reward model."""

    plus: float
    minus: float

    @property
    def share(self) -> float:
        """||f+|| / (||f+|| + ||f-||), from 0 (failures alone) to 1 (successes alone); nan where both are 0."""
        total = self.plus + self.minus
        return self.plus / total if total else nan

    @property
    def one_sided(self) -> bool:
        """Whether exactly one of the two norms is 0."""
        return (self.plus == 0.0) != (self.minus == 0.0)


def forces(outcomes: Sequence[int], votes: Sequence[tuple[int, int]], lam: float = 1.0) -> Forces:
    """The two norms for one task q.

    Theorem 2 (lambda = 1) has f+ = p_old(S=+1) 1(O=+1) and f- = p_old(S=-1) 1(O=-1). Remark 1 has the factor
    1 - lambda + 2 lambda p_old(S=+1) for any lambda, which is twice that of Theorem 2 for lambda = 1. This function
    computes ||f+|| = |1 - lambda + 2 lambda p+| sqrt(P(O=+1)), without a root of p+, and ||f-|| likewise with p-.

    Args:
        outcomes: of the task's rollouts, +1 or -1; P(O=+1) is their share of successes.
        votes: (outcome of the trajectory, verdict) of the valid votes on the task's steps; p+ and p- are their rates.
        lam: the reward model's lambda.

    Returns:
        The two norms. One is nan where the task has such rollouts but no valid vote on them. Both are nan without
        rollouts.
    """
    rates, count = precision(votes), len(outcomes)
    if not count:
        return Forces(nan, nan)

    def norm(outcome: int, p: float) -> float:
        share = sum(o == outcome for o in outcomes) / count
        return abs(1.0 - lam + 2.0 * lam * p) * sqrt(share) if share else 0.0

    return Forces(norm(1, rates.p_plus), norm(-1, rates.p_minus))


def force_ratio(tasks: Sequence[Forces]) -> float:
    """||f+|| / ||f-|| of the median task; nan where no task has a share.

    The median is taken over `Forces.share`. The ratio of Theorem 2 is 0 for a task that is too hard and infinite for
    one that is too easy. Their shares, 0 and 1, are equally far from 1/2. A mean of ratios would be infinite as soon as
    one of them is.
    """
    shares = [task.share for task in tasks if not isnan(task.share)]
    if not shares:
        return nan
    middle = median(shares)
    return middle / (1.0 - middle) if middle < 1.0 else inf


def one_sided_share(tasks: Sequence[Forces]) -> float:
    """Share of the tasks whose ratio is 0 or infinite, among the tasks that have a ratio; nan where none has."""
    known = [task.one_sided for task in tasks if not isnan(task.share)]
    return sum(known) / len(known) if known else nan
