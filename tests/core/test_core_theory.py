"""What the theorems promise, against exact sums, brute force and simulation."""

from __future__ import annotations

import random
from math import inf, isclose, isnan, sqrt

import pytest
from core_cases import relaxed
from hypothesis import assume, given
from hypothesis import strategies as st

from rlanything.core.theory import (
    empirical_precision,
    exact_precision,
    force_ratio,
    precision,
    precision_bound,
)

rates = st.floats(0.0, 1.0)
means = st.lists(st.sampled_from([-1.0, -1 / 3, 0.0, 1 / 3, 1.0]), max_size=12)


@pytest.mark.parametrize(
    ("p_plus", "p_minus", "m", "expected"),
    [(0.6, 0.6, 8, 0.7161), (0.9, 0.3, 8, 0.7640), (0.6, 0.6, 16, 0.8352), (0.9, 0.3, 16, 0.8936)],
)
def test_exact_precision_of_the_worked_examples(p_plus, p_minus, m, expected):
    assert round(exact_precision(p_plus, p_minus, m), 4) == expected


def test_one_vote_is_ordered_rightly_when_both_votes_are_right():
    assert isclose(exact_precision(0.7, 0.8, 1), 0.7 * 0.8)


def test_ties_count_as_failures():
    assert exact_precision(1.0, 0.0, 5) == 0.0
    assert empirical_precision([1.0, 0.0], [0.0]) == 0.5


@given(rates, rates, st.integers(1, 24))
@relaxed
def test_theorem_1_is_a_lower_bound_of_the_exact_precision(p_plus, p_minus, m):
    assert exact_precision(p_plus, p_minus, m) >= precision_bound(p_plus + p_minus, m) - 1e-12


@given(rates, rates)
@relaxed
def test_more_votes_help_exactly_when_mu_is_above_one(p_plus, p_minus):
    mu = p_plus + p_minus
    assume(abs(mu - 1.0) > 0.2)
    many = exact_precision(p_plus, p_minus, 256)
    assert many > 0.95 if mu > 1.0 else many < 0.05


@pytest.mark.parametrize(("p_plus", "p_minus", "m"), [(0.6, 0.6, 8), (0.9, 0.3, 3), (0.4, 0.5, 5)])
def test_simulated_votes_agree_with_the_exact_precision(p_plus, p_minus, m):
    rng = random.Random(7)

    def mean(p):
        return sum(rng.random() < p for _ in range(m)) / m

    count = 1500
    success = [mean(p_plus) for _ in range(count)]
    failure = [mean(1.0 - p_minus) for _ in range(count)]
    assert abs(empirical_precision(success, failure) - exact_precision(p_plus, p_minus, m)) < 0.03


@given(means, means)
@relaxed
def test_empirical_precision_is_the_share_of_rightly_ordered_pairs(success, failure):
    found = empirical_precision(success, failure)
    if success and failure:
        pairs = [s > f for s in success for f in failure]
        assert isclose(found, sum(pairs) / len(pairs))
    else:
        assert isnan(found)


def test_no_promise_without_information():
    assert precision_bound(1.0, 100) == precision_bound(0.3, 100) == 0.0
    assert precision_bound(2.0, 3) == pytest.approx(1 - 2.718281828459045**-0.75)


def test_precision_of_votes():
    votes = [(1, 1), (1, 1), (1, -1), (1, 1), (-1, -1), (-1, 1)]
    found = precision(votes)
    assert (found.p_plus, found.p_minus, found.mu) == (0.75, 0.5, 1.25)


def test_precision_without_a_success_or_a_failure_is_not_a_number():
    assert isnan(precision([(1, 1)]).p_minus)
    assert isnan(precision([(-1, 1)]).p_plus)
    assert isnan(precision([(-1, 1)]).mu)


def test_force_ratio_compares_caught_successes_with_caught_failures():
    votes = [(1, 1)] * 8 + [(-1, -1)] * 2 + [(1, -1), (-1, 1)]
    assert force_ratio(votes) == pytest.approx(sqrt(8) / sqrt(2))


def test_force_ratio_runs_away_on_tasks_that_are_too_hard_or_too_easy():
    assert force_ratio([(-1, -1)]) == 0.0
    assert force_ratio([(1, 1)]) == inf
    assert isnan(force_ratio([]))
