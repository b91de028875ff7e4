"""Theorem 1 and 2: exact values, the bound, and that estimates from votes meet them."""

from __future__ import annotations

import random
from math import exp, inf, isnan

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlanything.core.theory import (
    empirical_precision,
    exact_precision,
    force_ratio,
    precision,
    precision_bound,
)

SHARE = st.floats(0, 1)


@pytest.mark.parametrize(
    ("p_plus", "p_minus", "m", "expected"),
    [(0.6, 0.6, 8, 0.7161), (0.9, 0.3, 8, 0.7640), (0.6, 0.6, 16, 0.8352), (0.9, 0.3, 16, 0.8936)],
)
def test_exact_precision_is_the_oracle_value(p_plus, p_minus, m, expected):
    assert exact_precision(p_plus, p_minus, m) == pytest.approx(expected, abs=5e-5)


@given(SHARE, SHARE, st.integers(1, 12))
def test_exact_precision_is_never_below_the_bound(p_plus, p_minus, m):
    assert exact_precision(p_plus, p_minus, m) >= precision_bound(p_plus + p_minus, m) - 1e-9


@pytest.mark.parametrize("mu", [0.0, 0.7, 1.0])
def test_the_bound_promises_nothing_up_to_mu_one(mu):
    assert precision_bound(mu, 1000) == 0.0


def test_the_bound_is_that_of_theorem_one():
    assert precision_bound(1.5, 8) == pytest.approx(1 - exp(-0.5))


@pytest.mark.parametrize(("p_plus", "p_minus", "rises"), [(0.6, 0.6, True), (0.5, 0.4, False)])
def test_more_votes_help_exactly_when_mu_is_above_one(p_plus, p_minus, rises):
    few, many = exact_precision(p_plus, p_minus, 8), exact_precision(p_plus, p_minus, 64)
    assert (many > few) == rises
    assert (many > 0.95) == rises


@pytest.mark.parametrize(("p_plus", "p_minus"), [(0.6, 0.6), (0.9, 0.3), (0.4, 0.5)])
def test_sampled_votes_meet_the_exact_precision(p_plus, p_minus):
    draw = random.Random(7)
    m, steps = 8, 3000
    success = [sum(draw.random() < p_plus for _ in range(m)) for _ in range(steps)]
    failure = [sum(draw.random() < 1 - p_minus for _ in range(m)) for _ in range(steps)]
    assert empirical_precision(success, failure) == pytest.approx(
        exact_precision(p_plus, p_minus, m), abs=0.025
    )


@given(
    st.lists(st.integers(-3, 3), min_size=1, max_size=8), st.lists(st.integers(-3, 3), min_size=1, max_size=8)
)
def test_empirical_precision_counts_ordered_pairs_and_ties_fail(success, failure):
    pairs = [s > f for s in success for f in failure]
    assert empirical_precision(success, failure) == pytest.approx(sum(pairs) / len(pairs))


def test_precision_counts_each_side_on_its_own():
    rates = precision([(1, 1), (1, 1), (1, -1), (1, 1), (-1, -1), (-1, 1)])
    assert (rates.p_plus, rates.p_minus) == (0.75, 0.5)
    assert rates.mu == 1.25


def test_what_was_not_seen_is_nan():
    rates = precision([(1, 1)])
    assert rates.p_plus == 1.0
    assert isnan(rates.p_minus)
    assert isnan(rates.mu)
    assert isnan(empirical_precision([], [1.0]))
    assert isnan(force_ratio([]))


def test_the_force_ratio_leaves_zero_to_infinity_at_the_extremes():
    easy = [(1, 1)] * 9
    hard = [(-1, -1)] * 4
    assert force_ratio(easy + hard) == pytest.approx(1.5)
    assert force_ratio(easy) == inf
    assert force_ratio(hard) == 0.0
