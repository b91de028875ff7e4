"""Rewards and advantages: the worked examples, and what holds for all of them (Eq. 1, Eq. 2)."""

from __future__ import annotations

from math import isclose, sqrt

import pytest
from core_cases import lambdas, outcomes, relaxed, rewards, valid_votes, votes
from hypothesis import given
from hypothesis import strategies as st

from rlanything.core.signals import (
    accuracy,
    balance_weights,
    integrated_rewards,
    mean_vote,
    policy_advantages,
    spread,
    vote_advantages,
)

ROUND = 1e-6
HIGH, LOW = sqrt(0.5), sqrt(2.0)


def scored(outcome, cast, lam=1.0):
    """RM advantages of one step of a trajectory with that outcome."""
    (reward,) = integrated_rewards(outcome, [cast], lam)
    return vote_advantages(reward, cast)


@pytest.mark.parametrize(
    ("outcome", "cast", "expected"),
    [
        (1, (1, 1, -1), (HIGH, HIGH, -LOW)),
        (1, (1, -1, -1), (LOW, -HIGH, -HIGH)),
        (-1, (1, 1, -1), (-HIGH, -HIGH, LOW)),
        (-1, (1, -1, -1), (-LOW, HIGH, HIGH)),
    ],
)
def test_vote_advantages_of_the_worked_examples(outcome, cast, expected):
    assert scored(outcome, cast) == pytest.approx(expected)
    assert [round(a, 4) for a in expected] == [round(a, 4) for a in scored(outcome, cast)]


@pytest.mark.parametrize("outcome", [1, -1])
@pytest.mark.parametrize("cast", [(1, 1, 1), (-1, -1, -1), (1,), (-1, -1)])
def test_unanimous_votes_train_nothing(outcome, cast):
    assert scored(outcome, cast) == [None] * len(cast)


def test_integrated_reward_of_eq_1():
    cast = [[1, 1, 1], [1, 1, -1], [-1, -1, -1], []]
    assert integrated_rewards(1, cast, 1.0) == pytest.approx([2.0, 4 / 3, 0.0, 1.0])
    assert integrated_rewards(-1, cast, 0.5) == pytest.approx([-0.5, -5 / 6, -1.5, -1.0])


def test_lambda_zero_is_the_outcome_alone():
    assert integrated_rewards(-1, [[1, 1, 1], [None, 1, -1]], 0.0) == [-1.0, -1.0]


def test_the_step_only_arm_has_votes_and_no_outcome():
    assert integrated_rewards(1, [[1, 1, -1], [-1, -1, -1]], 1.0, use_outcome=False) == pytest.approx(
        [1 / 3, -1.0]
    )


def test_invalid_votes_are_left_out_of_the_reward():
    assert integrated_rewards(1, [[1, None, None], [None, None], [1, -1, None]], 1.0) == [2.0, 1.0, 1.0]
    assert mean_vote([None, None]) == 0.0


@given(outcomes, st.lists(votes, max_size=5), lambdas)
@relaxed
def test_the_reward_stays_within_one_plus_lambda(outcome, cast, lam):
    assert all(abs(r) <= 1.0 + lam + ROUND for r in integrated_rewards(outcome, cast, lam))


@given(rewards)
@relaxed
def test_advantages_of_each_step_index_are_z_scores_or_zero(table):
    advantages = policy_advantages(table)
    assert [len(row) for row in advantages] == [len(row) for row in table]
    for i in range(max(map(len, table))):
        column = [row[i] for row in advantages if len(row) > i]
        if any(column):
            assert isclose(sum(column), 0.0, abs_tol=1e-5)
            assert isclose(spread(column), 1.0, rel_tol=1e-5)


@given(rewards)
@relaxed
def test_advantages_keep_the_order_of_the_rewards(table):
    advantages = policy_advantages(table)
    for i in range(max(map(len, table))):
        pairs = [(row[i], scores[i]) for row, scores in zip(table, advantages, strict=True) if len(row) > i]
        ordered = sorted(pairs)
        assert [a for _, a in ordered] == sorted(a for _, a in ordered)


def test_a_known_group_of_four():
    table = [[1.0, 1.0], [1.0], [-1.0, 1.0], [-1.0, -1.0]]
    first, second, third, fourth = policy_advantages(table)
    assert (first[0], second[0], third[0], fourth[0]) == (1.0, 1.0, -1.0, -1.0)
    assert [first[1], third[1], fourth[1]] == pytest.approx([HIGH, HIGH, -LOW])


@pytest.mark.parametrize("scale", ["step", "task"])
def test_a_lone_survivor_has_nothing_to_be_compared_with(scale):
    advantages = policy_advantages([[2.0, 0.7, -2.0], [-1.0]], scale)
    assert advantages[0][1:] == [0.0, 0.0]
    assert advantages[0][0] == -advantages[1][0] != 0.0


def test_equal_rewards_give_zero_and_not_rounding_noise():
    assert policy_advantages([[0.1 + 0.2], [0.3]]) == [[0.0], [0.0]]


def test_a_group_without_steps_gives_nothing():
    assert policy_advantages([]) == []
    assert policy_advantages([[], []]) == [[], []]


def test_task_scale_divides_by_the_spread_of_all_the_tasks_rewards():
    table = [[2.0, -1.0], [-2.0, -1.2]]
    everything = [2.0, -1.0, -2.0, -1.2]
    late = policy_advantages(table, "task")[0][1]
    assert late == pytest.approx(0.1 / spread(everything))
    assert policy_advantages(table, "step")[0][1] == pytest.approx(1.0)


@given(rewards)
@relaxed
def test_task_scale_keeps_the_signs_and_the_zero_mean_of_each_step(table):
    by_step, by_task = policy_advantages(table), policy_advantages(table, "task")
    for i in range(max(map(len, table))):
        column = [row[i] for row in by_task if len(row) > i]
        assert isclose(sum(column), 0.0, abs_tol=1e-5)
        pairs = [(a[i], b[i]) for a, b in zip(by_step, by_task, strict=True) if len(a) > i]
        assert all(a * b > 0 for a, b in pairs if abs(a) > 1e-3)


@given(outcomes, valid_votes, lambdas)
@relaxed
def test_the_sign_of_a_vote_says_whether_it_agrees_with_the_outcome(outcome, cast, lam):
    for verdict, advantage in zip(cast, scored(outcome, cast, lam), strict=True):
        assert advantage is None or (advantage > 0) == (verdict == outcome)


@given(outcomes, valid_votes, lambdas)
@relaxed
def test_vote_advantages_are_z_scores_of_the_step_or_nothing(outcome, cast, lam):
    advantages = scored(outcome, cast, lam)
    if len(set(cast)) == 1:
        assert advantages == [None] * len(cast)
    else:
        assert isclose(sum(advantages), 0.0, abs_tol=ROUND)
        assert isclose(spread(advantages), 1.0, rel_tol=ROUND)


@given(outcomes, votes, lambdas)
@relaxed
def test_an_invalid_vote_never_flatters_another(outcome, cast, lam):
    """The valid votes score as if the invalid ones were not there, and each of those scores below them all."""
    advantages = scored(outcome, cast, lam)
    valid = [a for v, a in zip(cast, advantages, strict=True) if v is not None]
    assert valid == scored(outcome, [v for v in cast if v is not None], lam)
    floor = min((a for a in valid if a is not None), default=0.0)
    assert all(a == floor - 1.0 for v, a in zip(cast, advantages, strict=True) if v is None)
    assert all(a > 0 for v, a in zip(cast, advantages, strict=True) if v == outcome and a is not None)


def test_a_format_error_beside_a_wrong_verdict_leaves_it_without_a_positive_advantage():
    """The reference counts an unparsable vote as -2: then a wrong verdict stands above the mean."""
    right, wrong, broken = scored(1, [1, -1, None])
    assert (right, wrong, broken) == pytest.approx((1.0, -1.0, -2.0))
    assert scored(1, [-1, None]) == [None, -1.0]


def test_a_reward_of_zero_trains_no_valid_vote():
    assert vote_advantages(0.0, [1, -1, None]) == [None, None, -1.0]


def test_accuracy_counts_full_successes():
    assert accuracy([1, -1, -1, 1]) == 0.5
    with pytest.raises(ValueError, match="no outcomes"):
        accuracy([])


@given(st.lists(outcomes, max_size=30))
@relaxed
def test_balanced_successes_and_failures_weigh_the_same(owners):
    weights = balance_weights(owners)
    good = sum(w for o, w in zip(owners, weights, strict=True) if o == 1)
    if len(set(owners)) == 2:
        assert isclose(good, len(owners) / 2)
        assert isclose(sum(weights), len(owners))
    else:
        assert weights == [0.0] * len(owners)
