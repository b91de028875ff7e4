"""Pooling: the mathematics of random effects."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlanything.checks.pooling.random_effects import pooled

BCG = (
    [-0.8893, -1.5854, -1.3481, -1.4416, -0.2175, -0.7861, -1.6209, 0.012, -0.4694, -1.3713, -0.3394, 0.4459, -0.0173],
    [0.3256, 0.1946, 0.4154, 0.02, 0.0512, 0.0069, 0.223, 0.004, 0.0564, 0.073, 0.0124, 0.5325, 0.0714],
)  # fmt: skip
"""Log risk ratios of 13 trials of a vaccine, and their variances (Colditz et al. 1994)."""
AMOUNTS = st.floats(-1, 1)
EXPERIMENTS = st.lists(st.tuples(AMOUNTS, st.floats(1e-4, 0.1)), min_size=2, max_size=9)


def of(experiments):
    return pooled(*zip(*experiments, strict=True))


def test_a_known_example_has_the_numbers_of_another_library():
    """statsmodels 0.14: `combine_effects(..., method_re="iterated", use_t=True)`."""
    found = pooled(*BCG)
    assert found.tau**2 == pytest.approx(0.3180824, abs=1e-6)
    assert found.mean.mean == pytest.approx(-0.7149703, abs=1e-6)
    assert (found.mean.low, found.mean.high) == pytest.approx((-1.1091056, -0.3208350), abs=1e-6)


@given(EXPERIMENTS)
def test_the_weighted_squares_are_as_large_as_expected_or_tau_is_0(experiments):
    found, (means, variances) = of(experiments), np.array(experiments).T
    weights = 1 / (variances + found.tau**2)
    squares = weights @ (means - found.mean.mean) ** 2
    assert (
        squares == pytest.approx(len(means) - 1, rel=1e-5) if found.tau else squares <= len(means) - 1 + 1e-9
    )


@given(EXPERIMENTS, AMOUNTS, st.floats(0.1, 10), st.randoms())
def test_neither_the_origin_nor_the_unit_nor_the_order_changes_what_is_found(
    experiments, shift, unit, random
):
    found = of(experiments)
    changed = [(unit * (mean + shift), unit**2 * variance) for mean, variance in experiments]
    random.shuffle(changed)
    other = of(changed)
    for name in ("mean", "low", "high"):
        expected = unit * (getattr(found.mean, name) + shift)
        assert getattr(other.mean, name) == pytest.approx(expected, rel=1e-4, abs=1e-4 * unit)
    assert other.tau == pytest.approx(unit * found.tau, rel=1e-3, abs=1e-4 * unit)


@given(EXPERIMENTS)
def test_the_mean_lies_among_the_differences_and_in_its_interval(experiments):
    found, means = of(experiments).mean, [mean for mean, _ in experiments]
    assert min(means) - 1e-9 <= found.mean <= max(means) + 1e-9
    assert found.low < found.mean < found.high


@given(EXPERIMENTS)
def test_p_is_below_a_twentieth_where_the_interval_leaves_0_out(experiments):
    found = of(experiments)
    assert (found.p < 0.05) == (found.mean.low > 0 or found.mean.high < 0)


@pytest.mark.parametrize("tau", [0.0, 0.02, 0.05])
def test_at_least_nineteen_of_twenty_intervals_hold_the_truth(tau):
    """More where the true differences are equal (99 %): experiments that agree by chance do not make them narrow."""
    random, held, times = np.random.default_rng(0), 0, 2000
    for _ in range(times):
        errors = random.uniform(0.01, 0.04, size=7)
        means = random.normal(0.07, tau, size=7) + random.normal(0, errors)
        found = pooled(means, errors**2).mean
        held += found.low <= 0.07 <= found.high
    assert held / times >= 0.945  # two standard errors of 2,000 draws below 95 %


@pytest.mark.parametrize(
    ("means", "variances", "trouble"),
    [([0.1], [0.1], "at least two"), ([0.1, 0.2], [0.1, 0.0], "not above 0"), ([1, 2], [1], "1 variances")],
)
def test_what_cannot_be_pooled_is_refused(means, variances, trouble):
    with pytest.raises(ValueError, match=trouble):
        pooled(means, variances)
