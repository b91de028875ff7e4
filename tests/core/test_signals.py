"""Rewards and advantages: the paper's oracle values, and what must hold for any rewards and any votes."""

from __future__ import annotations

from math import sqrt

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from rlanything.core.signals import (
    accuracy,
    balance_weights,
    integrated_rewards,
    mean_vote,
    policy_advantages,
    spread,
    trajectory_advantages,
    vote_advantages,
)

VERDICTS = st.sampled_from([1, -1])
VOTES = st.lists(VERDICTS, min_size=1, max_size=9)
MAYBE_VOTES = st.lists(st.sampled_from([1, -1, None]), min_size=1, max_size=9)
REWARD = st.integers(-20, 20).map(lambda k: k / 10)
RAGGED = st.lists(st.lists(REWARD, max_size=6), max_size=6)
OUTCOMES = st.lists(VERDICTS, max_size=20)


def reward_of(outcome: int, votes: list[int | None], lam: float = 1.0) -> float:
    return integrated_rewards(outcome, [votes], lam)[0]


@pytest.mark.parametrize(
    ("outcome", "votes", "expected"),
    [
        (1, (1, 1, -1), (0.7071, 0.7071, -1.4142)),
        (1, (1, -1, -1), (1.4142, -0.7071, -0.7071)),
        (-1, (1, 1, -1), (-0.7071, -0.7071, 1.4142)),
        (-1, (1, -1, -1), (-1.4142, 0.7071, 0.7071)),
    ],
)
def test_vote_advantages_of_three_votes_are_the_oracle_values(outcome, votes, expected):
    assert vote_advantages(reward_of(outcome, votes), votes) == pytest.approx(expected, abs=1e-4)


@pytest.mark.parametrize("verdict", [1, -1])
@pytest.mark.parametrize("reward", [-2.0, -0.5, 0.0, 1.3, 2.0])
def test_unanimous_votes_train_nothing(reward, verdict):
    assert vote_advantages(reward, [verdict] * 3) == [None, None, None]


def test_votes_of_a_step_with_reward_zero_train_nothing():
    assert vote_advantages(0.0, [1, -1, 1]) == [None, None, None]


@pytest.mark.parametrize(
    ("outcome", "votes", "lam", "expected"),
    [
        (1, [1, 1, -1], 1.0, 4 / 3),
        (-1, [1, 1, -1], 1.0, -2 / 3),
        (1, [-1, -1, -1], 1.0, 0.0),
        (1, [1, -1, -1], 0.25, 1 - 0.25 / 3),
        (-1, [1, None, None], 0.5, -0.5),
    ],
)
def test_integrated_reward_is_outcome_plus_lambda_times_the_mean_valid_vote(outcome, votes, lam, expected):
    assert reward_of(outcome, votes, lam) == pytest.approx(expected)


@pytest.mark.parametrize("votes", [[], [None, None]])
def test_a_step_without_a_valid_vote_keeps_the_outcome_as_its_reward(votes):
    assert integrated_rewards(-1, [votes, [1, 1]], 0.5) == [-1.0, -0.5]
    assert mean_vote(votes) == 0.0


def test_without_the_outcome_only_the_votes_are_left():
    assert integrated_rewards(1, [[1, -1], [-1, -1]], 0.5, use_outcome=False) == [0.0, -0.5]


@given(VERDICTS, MAYBE_VOTES, st.floats(0, 4))
def test_the_integrated_reward_stays_within_one_plus_lambda(outcome, votes, lam):
    assert abs(reward_of(outcome, votes, lam)) <= 1 + lam + 1e-9


@given(VERDICTS, VOTES, st.floats(0, 1))
def test_up_to_lambda_one_the_sign_of_a_vote_advantage_says_whether_the_verdict_agrees(outcome, votes, lam):
    advantages = vote_advantages(reward_of(outcome, votes, lam), votes)
    for vote, advantage in zip(votes, advantages, strict=True):
        if advantage is not None:
            assert (advantage > 0) == (vote == outcome)


def test_above_lambda_one_votes_can_outweigh_the_outcome():
    assert vote_advantages(reward_of(1, [-1, -1, 1], 4.0), [-1, -1, 1])[0] > 0


@given(st.floats(0.1, 2), st.sampled_from([1, -1]), st.lists(VERDICTS, min_size=2, max_size=9))
def test_vote_advantages_have_mean_zero_and_spread_one(size, sign, votes):
    assume(len(set(votes)) == 2)
    advantages = [a for a in vote_advantages(sign * size, votes) if a is not None]
    assert len(advantages) == len(votes)
    assert sum(advantages) == pytest.approx(0.0, abs=1e-6)
    assert spread(advantages) == pytest.approx(1.0)


@given(REWARD, VOTES, st.integers(1, 4), st.randoms())
def test_invalid_votes_change_no_valid_advantage_and_get_the_minimum_minus_one(
    reward, votes, invalid, random
):
    mixed = [*votes, *[None] * invalid]
    random.shuffle(mixed)
    alone = vote_advantages(reward, [v for v in mixed if v is not None])
    together = vote_advantages(reward, mixed)
    assert [a for a, v in zip(together, mixed, strict=True) if v is not None] == alone
    floor = min((a for a in alone if a is not None), default=0.0) - 1.0
    assert [a for a, v in zip(together, mixed, strict=True) if v is None] == [floor] * invalid


def test_an_invalid_vote_never_gives_a_wrong_verdict_a_positive_advantage():
    wrong, invalid = vote_advantages(reward_of(1, [-1, None], 0.5), [-1, None])
    assert wrong is None
    assert invalid == -1.0


@given(RAGGED)
def test_policy_advantages_at_each_step_index_are_z_scores_or_all_zero(rewards):
    advantages = policy_advantages(rewards)
    assert [len(row) for row in advantages] == [len(row) for row in rewards]
    for i in range(max((len(r) for r in rewards), default=0)):
        before = [r[i] for r in rewards if len(r) > i]
        after = [a[i] for a in advantages if len(a) > i]
        if len(before) < 2 or len(set(before)) == 1:
            assert after == [0.0] * len(after)
        else:
            assert sum(after) == pytest.approx(0.0, abs=1e-6)
            assert spread(after) == pytest.approx(1.0)


@given(
    st.lists(st.tuples(st.sampled_from([1, -1]), st.lists(REWARD, max_size=4)), max_size=6),
    st.sampled_from(["step", "task"]),
)
def test_where_outcomes_are_alike_votes_alone_decide_nothing(tried, scale):
    outcomes, rewards = [o for o, _ in tried], [r for _, r in tried]
    every, mixed = (policy_advantages(rewards, scale, among) for among in (None, outcomes))
    for i in range(max((len(r) for r in rewards), default=0)):
        alive = [k for k, r in enumerate(rewards) if len(r) > i]
        alike = len({outcomes[k] for k in alive}) == 1
        assert [mixed[k][i] for k in alive] == [0.0 if alike else every[k][i] for k in alive]


def test_a_lone_survivor_has_advantage_zero():
    first, second = policy_advantages([[2.0, 1.7, -0.4], [-2.0]])
    assert first == [1.0, 0.0, 0.0]
    assert second == [-1.0]


def test_rounding_noise_is_not_blown_up_to_full_size():
    assert policy_advantages([[0.1 + 0.2], [0.3]]) == [[0.0], [0.0]]


def test_task_scale_divides_by_the_spread_of_all_rewards_but_centres_at_each_index():
    rewards = [[2.0, 1.0], [0.0, 0.9], [-1.0]]
    std = spread([2.0, 1.0, 0.0, 0.9, -1.0])
    result = policy_advantages(rewards, "task")
    assert [r[0] for r in result] == pytest.approx([(x - 1 / 3) / std for x in (2.0, 0.0, -1.0)])
    assert [r[1] for r in result[:2]] == pytest.approx([0.05 / std, -0.05 / std])


def test_step_scale_blows_late_noise_up_and_task_scale_does_not():
    rewards = [[2.0, -0.9], [-2.0, -1.1], [-2.0, -0.9]]
    assert policy_advantages(rewards, "step")[1][1] == pytest.approx(-sqrt(2))
    assert abs(policy_advantages(rewards, "task")[1][1]) < 0.15


@given(st.lists(st.lists(REWARD, min_size=1, max_size=1), min_size=2, max_size=8))
def test_both_scales_agree_for_episodes_of_one_step(rewards):
    assert policy_advantages(rewards, "task") == policy_advantages(rewards, "step")


@pytest.mark.parametrize("scale", ["step", "task"])
def test_equal_rewards_of_a_step_are_exactly_zero_whatever_the_rest_of_the_task_has(scale):
    third = 1 - 1 / 3  # three of them have a mean that differs from it in the last bit
    found = policy_advantages([[third, 1.0], [third, -1.0], [third, 0.0]], scale)
    assert [row[0] for row in found] == [0.0, 0.0, 0.0]
    assert all(row[1] for row in found[:2])


@pytest.mark.parametrize("scale", ["step", "task"])
def test_lone_survivors_are_zero_under_both_scales(scale):
    assert policy_advantages([[1.0, 0.5], [-1.0]], scale)[0][1] == 0.0


@given(OUTCOMES)
def test_balance_weights_let_both_outcomes_count_the_same_with_mean_one(outcomes):
    weights = balance_weights(outcomes)
    if len(set(outcomes)) < 2:
        assert weights == [0.0] * len(outcomes)
        return
    good = sum(w for w, o in zip(weights, outcomes, strict=True) if o == 1)
    assert good == pytest.approx(len(outcomes) / 2)
    assert sum(weights) == pytest.approx(len(outcomes))


def test_accuracy_is_the_share_of_successes_and_refuses_no_outcomes():
    assert accuracy([1, -1, -1, -1]) == 0.25
    with pytest.raises(ValueError, match="no outcomes"):
        accuracy([])


@pytest.mark.parametrize(
    ("outcomes", "expected"),
    [
        ((1, -1), (1.0, -1.0)),
        ((1, -1, -1, -1), (1.7321, -0.5774, -0.5774, -0.5774)),
        ((1, 1, -1, -1), (1.0, 1.0, -1.0, -1.0)),
        ((1, 1, 1), (0.0, 0.0, 0.0)),
        ((-1,), (0.0,)),
        ((), ()),
    ],
)
def test_grpo_advantages_are_z_scores_of_the_outcomes(outcomes, expected):
    assert trajectory_advantages(outcomes) == pytest.approx(expected, abs=1e-4)


@given(OUTCOMES)
def test_grpo_advantages_have_mean_zero_and_spread_one_and_the_sign_of_the_outcome(outcomes):
    found = trajectory_advantages(outcomes)
    if len(set(outcomes)) < 2:
        assert found == [0.0] * len(outcomes)
    else:
        assert sum(found) == pytest.approx(0.0, abs=1e-9)
        assert spread(found) == pytest.approx(1.0)
        assert all((a > 0) == (o > 0) for a, o in zip(found, outcomes, strict=True))


@given(OUTCOMES)
def test_for_trajectories_of_one_step_grpo_is_the_comparison_by_step_index(outcomes):
    """As for programs, which are one response each."""
    found = [row[0] for row in policy_advantages([[float(o)] for o in outcomes])]
    assert found == pytest.approx(trajectory_advantages(outcomes))
