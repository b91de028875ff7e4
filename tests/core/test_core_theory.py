"""What the theorems promise, against exact sums, brute force and simulation."""

from __future__ import annotations

import random
from math import comb, inf, isclose, isnan, sqrt

import pytest
from core_cases import relaxed
from hypothesis import assume, given
from hypothesis import strategies as st

from rlanything.core.theory import (
    empirical_precision,
    force_ratio,
    forces,
    one_sided_share,
    precision,
    precision_bound,
)

rates = st.floats(0.0, 1.0)


def exact_precision(p_plus: float, p_minus: float, m: int) -> float:
    """A for m independent votes a step: P(Binomial(m, p+) > Binomial(m, 1 - p-))."""
    up = [binomial(m, k, p_plus) for k in range(m + 1)]
    down = [binomial(m, k, 1.0 - p_minus) for k in range(m + 1)]
    return sum(up[i] * down[j] for i in range(m + 1) for j in range(i))


def binomial(n: int, k: int, p: float) -> float:
    return comb(n, k) * p**k * (1.0 - p) ** (n - k)


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
    found = precision([(1, 1), (1, 1), (1, -1), (1, 1), (-1, -1), (-1, 1)])
    assert (found.p_plus, found.p_minus, found.mu) == (0.75, 0.5, 1.25)


def test_precision_without_a_success_or_a_failure_is_not_a_number():
    assert isnan(precision([(1, 1)]).p_minus)
    assert isnan(precision([(-1, 1)]).p_plus)
    assert isnan(precision([(-1, 1)]).mu)


def votes(plus: tuple[int, int], minus: tuple[int, int]) -> list[tuple[int, int]]:
    """`plus`: verdicts of +1 and of -1 on steps of successes; `minus`: of -1 and of +1 on steps of failures."""
    return [(1, 1)] * plus[0] + [(1, -1)] * plus[1] + [(-1, -1)] * minus[0] + [(-1, 1)] * minus[1]


@pytest.mark.parametrize(
    ("lam", "plus", "minus"),
    [
        # acc 1/4, p+ = 3/4, p- = 1/2: sqrt(1/4) = 1/2 and sqrt(3/4) = 0.8660254
        (1.0, 0.75, 0.8660254),  # 2 * 3/4 * 1/2; 2 * 1/2 * 0.866
        (0.25, 0.5625, 0.8660254),  # (3/4 + 1/2 * 3/4) * 1/2; (3/4 + 1/2 * 1/2) * 0.866
        (4.0, 1.5, 0.8660254),  # (-3 + 8 * 3/4) * 1/2; (-3 + 8 * 1/2) * 0.866
        (0.0, 0.5, 0.8660254),  # without votes only the outcome is left
    ],
)
def test_forces_of_the_worked_example(lam, plus, minus):
    found = forces([1, 1, -1, -1, -1, -1, -1, -1], votes((3, 1), (2, 2)), lam)
    assert (found.plus, found.minus) == (pytest.approx(plus), pytest.approx(minus))


def test_the_force_is_the_rate_itself_and_not_its_root():
    """p+ = 1/4 against p- = 1 at accuracy 1/2: the ratio is 1/4. Roots of counts would give 1/2."""
    assert force_ratio([forces([1, -1], votes((1, 3), (4, 0)))]) == pytest.approx(0.25)


def test_force_ratio_runs_away_on_tasks_that_are_too_hard_or_too_easy():
    too_hard, too_easy = forces([-1] * 8, votes((0, 0), (5, 3))), forces([1] * 8, votes((5, 3), (0, 0)))
    assert force_ratio([too_hard]) == 0.0
    assert force_ratio([too_easy]) == inf
    assert force_ratio([too_hard, too_easy]) == 1.0
    assert one_sided_share([too_hard, too_easy]) == 1.0
    balanced = forces([1, -1], votes((3, 1), (3, 1)))
    assert force_ratio([too_hard, balanced, too_easy]) == pytest.approx(1.0)
    assert one_sided_share([too_hard, balanced, too_easy]) == pytest.approx(2 / 3)


def test_a_task_of_which_nothing_is_known_is_left_out():
    unjudged, unseen = forces([1, -1], []), forces([], [])
    nothing = forces([1], votes((0, 4), (0, 0)))
    assert (nothing.plus, nothing.minus) == (0.0, 0.0)
    for tasks in ([], [unjudged], [unseen], [nothing], [unjudged, unseen, nothing]):
        assert isnan(force_ratio(tasks))
        assert isnan(one_sided_share(tasks))
    known = forces([1, -1], votes((1, 1), (2, 0)))
    assert force_ratio([unjudged, known, nothing]) == pytest.approx(0.5)


counts = st.tuples(st.integers(0, 30), st.integers(0, 30))
outcomes = st.lists(st.sampled_from([-1, 1]), min_size=1, max_size=12)
lambdas = st.sampled_from([0.0, 0.25, 1.0, 4.0])


@given(outcomes, counts, counts, lambdas)
@relaxed
def test_forces_are_the_norms_of_f_over_the_rollouts(found, plus, minus, lam):
    """The L2 norm written out: the mean over the rollouts of f squared, where f is 0 on the other outcome."""
    assume((1 not in found or sum(plus)) and (-1 not in found or sum(minus)))
    both = forces(found, votes(plus, minus), lam)
    for outcome, (right, wrong), norm in ((1, plus, both.plus), (-1, minus, both.minus)):
        p = right / (right + wrong) if right + wrong else 0.0
        f = [(1 - lam + 2 * lam * p) * (o == outcome) for o in found]
        assert isclose(norm, sqrt(sum(x * x for x in f) / len(f)), abs_tol=1e-12)


@given(outcomes, counts, counts, lambdas)
@relaxed
def test_forces_change_sides_when_every_outcome_and_verdict_does(found, plus, minus, lam):
    one = forces(found, votes(plus, minus), lam)
    other = forces([-o for o in found], votes(minus, plus), lam)
    assert str((one.plus, one.minus)) == str((other.minus, other.plus))


@given(st.integers(1, 11), st.integers(1, 20), st.integers(1, 20))
@relaxed
def test_one_more_success_moves_the_force_to_the_side_of_successes(wins, plus, minus):
    fewer, more = (
        forces([1] * k + [-1] * (12 - k), votes((plus, 1), (minus, 1))).share for k in (wins - 1, wins)
    )
    assert fewer < more
