"""Metrics: what an iteration says about itself, and when it warns in words."""

from __future__ import annotations

from math import isnan
from types import SimpleNamespace

import pytest
from scripted import World, task

from rlanything.config import ArmConfig
from rlanything.core.theory import precision_bound
from rlanything.core.types import Vote
from rlanything.loop import metrics
from rlanything.rewards.step_votes import metrics as vote_metrics
from rlanything.rewards.unit_tests import metrics as test_metrics

HEALTHY = {"mu": 1.3, "invalid_votes": 0.0, "policy_trajectories": 5.0}


def warnings(history, **patience):
    """What a run says about its reward model, then about its policy."""
    rooms = (vote_metrics, test_metrics, metrics)
    return [warning for room in rooms for warning in room.warnings(history, **patience)]


def collected(wins, *tasks, **options):
    world = World(wins, **options)
    return world.loop.collect(world.start(*tasks)).metrics


def test_accuracy_is_the_mean_over_tasks_and_coverage_the_share_inside_the_band():
    found = collected({0: 2, 1: 0}, task(0), task(1))
    assert found["accuracy"] == 0.25
    assert found["band_coverage"] == 0.5


def test_steps_statuses_and_lessons_are_counted():
    found = collected({0: 2, 1: 2}, task(0), task(1, fault="raise in step"))
    assert (found["status/ok"], found["status/env_error"]) == (4.0, 4.0)
    assert found["episode_steps"] == 2.0
    assert found["policy_trajectories"] == 4.0
    assert found["reward_steps"] == 8.0
    assert found["invalid_actions"] == 0.0


def test_episodes_whose_prompt_does_not_fit_are_counted_apart_from_those_that_ran_out_of_steps():
    short = collected({0: 2}, task(0), rollout={"max_steps": 1})
    assert (short["status/truncated"], short["context_full"]) == (4.0, 0.0)
    full = collected({0: 2}, task(0), rollout={"max_tokens": 10_000})
    assert (full["status/truncated"], full["context_full"]) == (4.0, 1.0)


def test_vote_metrics_are_those_of_theorem_one():
    found = collected({0: 2}, task(0), votes=("good", "good", "bad"))
    assert found["votes"] == 24.0
    assert found["p_plus"] == pytest.approx(2 / 3)
    assert found["p_minus"] == pytest.approx(1 / 3)
    assert found["mu"] == pytest.approx(1.0)
    assert found["mean_vote"] == pytest.approx(1 / 3)
    assert found["precision"] == 0.0
    assert found["precision_bound"] == pytest.approx(precision_bound(found["mu"], 3))
    assert found["task_force_ratio"] == pytest.approx(2.0)
    assert found["one_sided_tasks"] == 0.0
    assert found["unanimous"] == 0.0


def test_a_step_without_a_readable_vote_is_in_no_pair():
    """On the success the reward model lost its format: that says nothing about the order of the two steps."""

    def precision(*votes: int | None) -> float:
        episodes = [
            SimpleNamespace(
                trajectory=SimpleNamespace(outcome=outcome),
                judgements=[SimpleNamespace(votes=[Vote(v, "", (), ()) for v in step])],
            )
            for outcome, step in ((1, votes), (-1, (-1, -1, -1)))
        ]
        return vote_metrics.vote_metrics([SimpleNamespace(episodes=episodes, proposal=None)], 3)["precision"]

    assert isnan(precision(None, None, None))
    assert precision(1, None, None) == 1.0
    assert precision(-1, None, None) == 0.0


def test_the_mean_vote_is_of_the_tasks_whose_success_it_is_compared_with():
    """A proposal is solved more or less often than the task that it would replace: its votes do not flatter."""

    def group(verdict: int, proposal: object) -> SimpleNamespace:
        judgement = SimpleNamespace(votes=[Vote(verdict, "", (), ())])
        episode = SimpleNamespace(trajectory=SimpleNamespace(outcome=-1), judgements=[judgement])
        return SimpleNamespace(episodes=[episode], proposal=proposal)

    found = vote_metrics.vote_metrics([group(-1, None), group(1, object())], 1)
    assert found["mean_vote"] == -1.0
    assert found["p_minus"] == 0.5


def test_forces_are_those_of_each_task_with_the_reward_models_lambda():
    """Accuracies 1/2 and 0 at p+ = 2/3, p- = 1/3: forces 5/3 and 1/3 of equal weight at lambda 2, and one-sided."""
    found = collected({0: 2, 1: 0}, task(0), task(1), reward_lambda=2.0)
    assert found["task_force_ratio"] == pytest.approx((5 / 6) / 2 / (1 - (5 / 6) / 2))
    assert found["one_sided_tasks"] == 0.5
    assert collected({0: 2}, task(0), reward_lambda=2.0)["task_force_ratio"] == pytest.approx(5.0)


def test_invalid_votes_are_counted_and_left_out_of_the_rates():
    found = collected({0: 2}, task(0), votes=("good", "?", "?"))
    assert found["invalid_votes"] == pytest.approx(2 / 3)
    assert (found["p_plus"], found["p_minus"], found["mean_vote"]) == (1.0, 0.0, 1.0)


@pytest.mark.parametrize(
    ("votes", "share"),
    [
        (("good", "good", "good"), 1.0),
        (("bad", "bad", "bad"), 1.0),
        (("?", "?", "?"), 0.0),
        (("good", "good", "?"), 0.0),
    ],
)
def test_unanimous_steps_are_those_that_train_nothing(votes, share):
    """A vote without a verdict does train: its format is punished."""
    assert collected({0: 2}, task(0), votes=votes)["unanimous"] == share


def test_an_arm_without_votes_reports_none():
    arm = ArmConfig(step_votes=False, train_reward=False, adapt=False)
    assert not {"mu", "votes", "p_plus"} & set(collected({0: 2}, task(0), arm=arm))


def test_adaptation_is_counted():
    world = World({0: 4, 1: 0, 3: 2}, adapter=lambda r: "level 3" if 1 in r.prompt_ids else "?")
    found = world.loop.collect(world.start(task(0), task(1))).metrics
    assert (found["proposals"], found["invalid_proposals"]) == (2.0, 1.0)
    assert isnan(found["accept_rate"])
    world = World({1: 0, 3: 2}, adapter=lambda _: "level 3")
    state = world.loop.collect(world.start(task(1))).state
    found = world.loop.collect(state).metrics
    assert (found["accepted"], found["accept_rate"], found["accepted_total"]) == (1.0, 1.0, 1.0)
    assert isnan(found["accuracy"])


def test_the_accuracy_on_accepted_tasks_counts_them_when_they_are_accepted_and_later():
    world = World({1: 0, 3: 2}, adapter=lambda _: "level 3")
    first = world.loop.collect(world.start(task(1)))
    assert "accepted_accuracy" not in first.metrics
    second = world.loop.collect(first.state)
    third = world.loop.collect(second.state)
    assert (second.metrics["accepted"], third.metrics["accepted"]) == (1.0, 0.0)
    assert second.metrics["accepted_accuracy"] == third.metrics["accepted_accuracy"] == 0.5


def test_response_tokens_are_the_mean_over_steps_with_the_end_of_turn():
    found = collected({0: 2}, task(0))
    assert found["response_tokens"] == (len("win") + len("lose")) / 2 + 1


def test_a_healthy_run_has_no_warning():
    assert warnings([HEALTHY] * 10) == []


@pytest.mark.parametrize("mu", [1.0, 0.8])
def test_mu_at_or_below_one_for_three_iterations_warns_in_words(mu):
    (warning,) = warnings([HEALTHY, *[{**HEALTHY, "mu": mu}] * 3])
    assert f"mu = {mu:.2f}" in warning
    assert "3 iterations" in warning
    assert "Train the reward model" in warning


@pytest.mark.parametrize("mus", [[0.9, 0.9], [0.9, 1.1, 0.9], [0.9, 0.9, 0.9, 1.01], [0.9, 0.9, None]])
def test_mu_that_recovered_or_was_low_too_shortly_does_not_warn(mus):
    assert warnings([{**HEALTHY, "mu": mu} for mu in mus]) == []


def test_votes_without_verdicts_warn_with_their_share():
    (warning,) = warnings([{**HEALTHY, "invalid_votes": 0.75}] * 3)
    assert "75% of the votes hold no verdict" in warning
    assert warnings([{**HEALTHY, "invalid_votes": 0.5}] * 3) == []


def test_a_policy_that_learns_nothing_warns():
    (warning,) = warnings([{**HEALTHY, "policy_trajectories": 0.0}] * 3)
    assert "the policy learns nothing" in warning


def test_a_policy_whose_every_episode_crashes_is_warned_of_that_and_not_of_its_rewards():
    world = World({0: 2}, rollout={"tasks": 1})
    state, rows = world.start(task(0, fault="raise in reset")), []
    for _ in range(3):
        result = world.loop.collect(state)
        state, rows = result.state, [*rows, result.metrics]
    (warning,) = warnings(rows)
    assert "every episode of the last 3 iterations crashed or timed out" in warning
    (other,) = warnings([*rows[:2], {**rows[2], "status/truncated": 1.0}])
    assert "were all alike" in other


def test_several_things_may_be_wrong_at_once():
    bad = {"mu": 0.9, "invalid_votes": 0.9, "policy_trajectories": 0.0}
    assert len(warnings([bad] * 3)) == 3
    assert len(warnings([bad] * 2, patience=2)) == 3


def test_an_arm_without_votes_is_warned_when_its_policy_learns_nothing():
    assert len(warnings([{"policy_trajectories": 0.0}] * 3)) == 1


@pytest.mark.parametrize("method", ["describe", "parse", "validate", "exercise"])
def test_rewrites_at_which_the_environment_raised_are_counted_and_warned_of(method):
    def raising(*_: object) -> object:
        raise KeyError("goal")

    world = World({1: 0}, adapter=lambda _: "level 3")
    assert "proposal_errors" not in world.loop.collect(world.start(task(1))).metrics
    setattr(
        world.family, method, raising
    )  # not of the class: Python remembers whose methods are a protocol's
    found = world.loop.collect(world.start(task(1))).metrics
    assert (found["proposals"], found["invalid_proposals"], found["proposal_errors"]) == (1.0, 1.0, 1.0)
    (warning,) = warnings([found])
    assert "raised an exception at 1 of the adapter's rewrites" in warning
    assert f"`{method}`" in warning
    assert warnings([found, HEALTHY]) == []


def test_a_mean_is_of_what_is_known():
    assert metrics.mean_or_none([None, 1, 2.0]) == 1.5
    assert metrics.mean_or_none([None]) is metrics.mean_or_none([]) is None
