"""The loop with a reward model that writes unit tests: rewards, lessons, acceptance, records."""

from __future__ import annotations

import json
from dataclasses import replace
from math import sqrt

import pytest
from scripted import read
from scripted_coding import FULL, TESTS, CodingWorld, problem

from rlanything.core.types import Direction, Episode, EventKind, Proposal, Status
from rlanything.loop.batch import LoopState
from rlanything.loop.prompts import UNREADABLE
from rlanything.loop.record import episode_records
from rlanything.rewards.unit_tests.records import FILE, UnitTestRecord, unit_test_records

MIXED = ("right", "half", "bad", "right")
UP = sqrt(1.5)
"""z-score of the highest of three equally spaced values."""


def collected(programs=None, **changed):
    programs = programs or {0: MIXED}
    world = CodingWorld(programs, **changed)
    return world, world.loop.collect(world.start(*map(problem, programs)))


def advantages(result):
    return {lesson.trajectory.rollout: lesson.advantages[0] for lesson in result.policy}


def test_a_test_is_paid_for_the_wrong_programs_it_rejects_and_fined_for_those_it_lets_pass():
    _, result = collected()
    (lesson,) = result.reward
    assert lesson.advantages[0] == pytest.approx((UP, 0.0, -UP))  # rewards +2, +0, -2
    assert lesson.weights == (1.0,)
    assert [test.text for test in lesson.questions[0].replies] == list(TESTS)


def test_tests_are_written_at_the_temperature_and_length_of_the_judge():
    world, _ = collected(judge={"temperature": 0.6, "max_tokens": 10})
    asked = world.reward.engine.asked
    assert {(r.temperature, r.max_tokens) for r in asked} == {(0.6, 10)}


@pytest.mark.parametrize("lam", [0.0, 1.0])
def test_a_program_is_paid_for_its_tests_and_for_the_right_ones_among_the_generated(lam):
    _, result = collected(**{"lambda": lam})
    rewards = [1 + lam, 0.5 + lam / 2, lam / 2, 1 + lam]
    mean = sum(rewards) / 4
    std = sqrt(sum((r - mean) ** 2 for r in rewards) / 4)
    found = advantages(result)
    assert [found[k] for k in range(4)] == pytest.approx([(r - mean) / std for r in rewards])


def test_the_critic_reads_of_wrong_programs_and_of_rollouts_without_one():
    world, result = collected()
    (group,) = result.groups
    empty = replace(
        group.trajectories[0], rollout=9, steps=(), outcome=-1, status=Status.TRUNCATED, error="too long"
    )
    found = world.loop.reward_model.critic_input(replace(group, episodes=(*group.episodes, Episode(empty))))
    assert [f.rollout for f in found.failures] == [1, 2, 9]
    assert (found.failures[2].opening, found.failures[2].ending) == ("No program was written.", "too long")


def test_a_reply_without_a_test_is_punished_below_every_wrong_test():
    _, result = collected(replies=("strict", "lie", "no test at all"))
    (row,) = result.reward[0].advantages
    assert row == pytest.approx((1.0, -1.0, -2.0))
    assert result.metrics["invalid_tests"] == pytest.approx(1 / 3)


def test_programs_and_tests_are_read_after_their_thoughts():
    thinking = [f"<think>bad, lie</think>{word}" for word in ("right", "half", "bad", "right")]
    world, result = collected(
        {0: thinking}, replies=("<think>weak</think>strict", "<think>strict", "weak</think>lie")
    )
    assert world.family.examined[0][1:] == (("right", "half", "bad", "right"), ["strict", "", "lie"])
    replies = result.reward[0].questions[0].replies
    assert [test.text for test in replies] == ["strict", "", "lie"]
    assert read(replies[1].response_ids) == "<think>strict"
    assert result.metrics["invalid_tests"] == pytest.approx(1 / 3)


def test_half_a_thought_is_no_program():
    world, result = collected({0: ("right", "<think>right", "half", "right")})
    assert world.family.examined[0][1][1] == UNREADABLE
    assert result.metrics["invalid_actions"] == 0.25
    assert result.metrics["accuracy"] == 0.5


def test_without_step_votes_nobody_is_asked_and_the_pass_rate_is_the_reward():
    world, result = collected(arm=FULL.model_copy(update={"step_votes": False, "train_reward": False}))
    assert world.reward.engine.asked == []
    assert result.reward == ()
    assert "tests" not in result.metrics
    mean, std = 0.625, sqrt(0.171875)
    assert [advantages(result)[k] for k in range(4)] == pytest.approx(
        [(r - mean) / std for r in (1, 0.5, 0, 1)]
    )


def test_tests_of_tasks_outside_the_reward_band_train_nothing():
    _, result = collected(
        {0: ("right", "right", "right", "right")}, arm=FULL.model_copy(update={"adapt": False})
    )
    assert result.reward == ()
    assert result.metrics["ut"] == pytest.approx(2 / 3)  # measured all the same


def test_metrics_count_right_and_telling_tests():
    _, result = collected()
    assert result.metrics["tests"] == 3
    assert result.metrics["ut"] == pytest.approx(2 / 3)
    assert result.metrics["detect"] == pytest.approx(1 / 3)
    assert not {"mu", "votes"} & set(result.metrics)


def test_every_program_of_a_turn_is_announced_before_the_first_is_tried():
    world, _ = collected()
    kinds = [kind for kind, _ in world.family.order]
    assert kinds == ["prefetch"] * 4 + ["step"] * 4


def test_a_crashed_episode_is_not_examined():
    world, result = collected({0: ("right", "crash", "bad", "half")})
    assert [tuple(programs) for _, programs, _ in world.family.examined] == [("right", "bad", "half")]
    assert set(advantages(result)) == {0, 2, 3}
    assert result.metrics["status/env_error"] == 1


def test_a_task_whose_every_episode_crashed_teaches_nothing():
    _, result = collected({0: ("crash",) * 4})
    assert (result.policy, result.reward) == ((), ())
    assert result.metrics["tests"] == 3


def test_a_question_that_does_not_fit_the_context_leaves_the_task_its_own_tests():
    world, result = collected(reward_context=20)
    assert world.reward.engine.asked == []
    assert result.reward == ()
    assert len(result.policy) == 4
    assert result.metrics["unasked"] == 1.0


def test_the_adapter_reads_the_tests_and_how_the_programs_did():
    world, result = collected({0: ("bad", "half", "bad", "half")}, adapter=lambda _: "5")
    (event,) = result.events
    assert event.critic == "4 programs of solve 0, tests strict weak lie"
    assert event.critic in read(world.adapter.engine.asked[0].prompt_ids)
    assert event.kind is EventKind.PROPOSED


def test_a_model_critic_reads_every_wrong_program_with_the_tests_that_it_fails():
    programs = {0: ["half", "wrong", "crash", "wrong"]}
    world = CodingWorld(programs, critic="model", adapter=lambda _: r"\boxed{It stops early.}")
    result = world.loop.collect(world.start(problem(0)))
    first, second, third, _ = (read(r.prompt_ids) for r in world.adapter.engine.asked[:4])
    assert "The program:\nhalf\n[1] failed test: test 1\nRollout 0 ends." in first
    assert "[0] failed test: test 0\n[1] failed test: test 1\nRollout 1 ends." in second
    assert "Rollout 3 begins." in third
    assert result.events[0].critic.count("It stops early.") == 3


def decided(programs, **payload):
    """What becomes of problem 1, a harder rewrite of problem 0, with these programs."""
    world = CodingWorld({0: MIXED, 1: programs})
    state = world.start(problem(0, **payload))
    parent = state.buffer.head(0)
    proposal = Proposal(0, Direction.HARDER, parent.task_id, 1.0, "", "", "1", 0, 0, problem(1, **payload))
    result = world.loop.collect(LoopState(0, state.buffer, 0, (proposal,)))
    return next(e for e in result.events if e.kind in (EventKind.ACCEPTED, EventKind.REJECTED)), result


def test_a_rewrite_whose_tests_two_different_programs_pass_is_accepted():
    event, result = decided(("right", "right too", "bad", "bad"))
    assert event.kind is EventKind.ACCEPTED
    assert result.policy


@pytest.mark.parametrize("other", ["right", "right # the same in other words"])
def test_a_rewrite_that_only_one_program_passes_may_contradict_itself_and_is_rejected(other):
    event, result = decided(("right", other, "bad", "bad"))
    assert event.kind is EventKind.REJECTED
    assert "two different programs" in event.reason
    assert (result.policy, result.reward) == ((), ())


def test_a_rewrite_with_a_known_solution_needs_no_second_program():
    event, _ = decided(("right", "right", "bad", "bad"), proven=True)
    assert event.kind is EventKind.ACCEPTED


def test_tests_are_stored_with_what_they_taught_and_read_back_as_they_were():
    _, result = collected()
    records = [json.loads(json.dumps(record)) for record in unit_test_records(result.groups)[FILE]]
    assert [UnitTestRecord.from_json(r).examined for r in records] == [g.findings for g in result.groups]
    assert records[0]["lesson"] == {"advantages": list(result.reward[0].advantages[0]), "weight": 1.0}
    episodes = list(episode_records(result.groups))
    assert [e["lesson"]["policy"] for e in episodes] == [[advantages(result)[k]] for k in range(4)]
    assert all(e["judgements"] == [] for e in episodes)


def test_the_same_seeds_write_the_same_tests_whatever_else_is_asked():
    world, _ = collected()
    wider, _ = collected({0: MIXED, 1: MIXED})
    seeds = {r.seed for r in world.reward.engine.asked}
    assert len(seeds) == len(TESTS)
    assert seeds < {r.seed for r in wider.reward.engine.asked}
