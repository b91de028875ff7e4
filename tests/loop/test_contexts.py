"""What policy and reward model see with model.context = history, and what becomes of thoughts in both contexts."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from scripted import World, chat_model, prompts, read, rollout_worker, task, voting

from rlanything.config import AdaptationConfig, JudgeConfig
from rlanything.core.errors import ConfigError
from rlanything.core.records.rollouts import trajectory_from_json, trajectory_to_json
from rlanything.core.types import Direction, Status, Trajectory
from rlanything.loop.adapt import Adapter
from rlanything.loop.prompts import UNREADABLE
from rlanything.loop.rollout import Assignment, Sampling
from rlanything.rewards.step_votes.judge import Judge

SAMPLING = Sampling(run_seed=3, phase="act", iteration=0, temperature=0.8, max_steps=4)
THOUGHT = "<think>win? lose? good, bad</think>"


def worker(script, context="history", **changed):
    return rollout_worker(script, spoken=prompts(context=context), **changed)


def played(script, context="history", steps=3, rollouts=1, **changed) -> list[Trajectory]:
    return worker(script, context, **changed).roll_out(
        [Assignment(0, task(1, steps=steps), rollouts)], SAMPLING
    )


def judge(context="history", **limits) -> Judge:
    model = chat_model(voting(("good",)), **limits)
    return Judge(model, prompts(context=context), JudgeConfig(m=3, max_tokens=8))


def test_a_history_is_one_user_turn_with_actions_and_observations_so_far():
    (trajectory,) = played(lambda _: f"{THOUGHT}win")
    first = trajectory.first_observation
    assert [step.prompt_text for step in trajectory.steps] == [
        f"play\n{first}|1. win\n2. lose",
        f"play\n{first} > win\nwin was done|1. win\n2. lose",
        f"play\n{first} > win\nwin was done > win\nwin was done|1. win\n2. lose",
    ]
    for step in trajectory.steps:
        assert read(step.prompt_ids) == f"<user>{step.prompt_text}<assistant>"
        assert step.response_text == f"{THOUGHT}win"
        assert step.action == "win"


def test_a_chat_keeps_the_whole_reply_in_its_prompts_and_stores_no_texts():
    (trajectory,) = played(lambda _: f"{THOUGHT}win", "chat")
    assert read(trajectory.steps[2].prompt_ids).count(THOUGHT) == 2
    assert {(s.action, s.prompt_text, s.response_text) for s in trajectory.steps} == {("win", "", "")}


def test_half_a_thought_acts_nowhere_and_is_counted_as_invalid():
    acting = worker(lambda _: "<think>I will win")
    (trajectory,) = acting.roll_out([Assignment(0, task(1), 1)], SAMPLING)
    assert acting.family.acted == [UNREADABLE] * 2
    assert not any(step.valid for step in trajectory.steps)
    assert trajectory.outcome == -1
    world = World({0: 2})
    world.policy.engine.script = lambda _: "<think>I will win"
    assert world.loop.collect(world.start(task(0))).metrics["invalid_actions"] == 1.0


def test_rollouts_of_a_task_share_a_group_and_keep_no_session():
    acting = worker(lambda _: "win")
    acting.roll_out([Assignment(0, task(1), 2), Assignment(1, task(2), 2)], SAMPLING)
    asked = acting.policy.engine.asked
    assert {request.session for request in asked} == {""}
    assert len({request.group for request in asked}) == 2
    chatting = worker(lambda _: "win", "chat")
    chatting.roll_out([Assignment(0, task(1), 2)], SAMPLING)
    assert {request.group for request in chatting.policy.engine.asked} == {""}
    assert len({request.session for request in chatting.policy.engine.asked}) == 2


def test_a_history_that_does_not_fit_ends_the_episode_uncut():
    whole = played(lambda _: "win", steps=9)[0]
    length = len(whole.steps[2].prompt_ids)
    (trajectory,) = played(lambda _: "win", steps=9, max_context=length + 8 - 1)
    assert (trajectory.status, trajectory.outcome, len(trajectory.steps)) == (Status.TRUNCATED, -1, 2)
    assert trajectory.error == "the policy's context is full"
    assert trajectory.steps == whole.steps[:2]


def test_a_trajectory_with_texts_survives_json_and_stores_each_text_once():
    (trajectory,) = played(lambda _: f"{THOUGHT}win")
    record = json.loads(json.dumps(trajectory_to_json(trajectory)))
    assert trajectory_from_json(record) == trajectory
    kept = [step["text_kept"] for step in record["steps"]]
    assert kept[0] == 0
    assert kept[1] > len(trajectory.first_observation)
    assert kept[2] > kept[1]
    record["steps"][1]["text_kept"] = 10_000
    with pytest.raises(ValueError, match=r"text_kept = 10000: the turn before has .* characters"):
        trajectory_from_json(record)


def test_a_trajectory_of_a_chat_is_stored_without_texts():
    (trajectory,) = played(lambda _: "win", "chat")
    record = trajectory_to_json(trajectory)
    assert not any(key.startswith(("text", "response_text")) for step in record["steps"] for key in step)


def test_the_judge_reads_prompt_whole_response_and_result_of_one_step():
    (trajectory,) = played(lambda _: f"{THOUGHT}win")
    asked = judge().questions(trajectory)
    assert [read(ids) for ids in asked] == [
        f"<user>judge [{step.prompt_text}] [{THOUGHT}win] win: win was done?<assistant>"
        for step in trajectory.steps
    ]


def test_the_votes_of_a_step_share_a_prompt_and_those_of_a_trajectory_a_group():
    asking = judge()
    asking.judge(played(lambda _: "win", rollouts=2), 1, 0)
    asked = asking.reward.engine.asked
    assert len(asked) == 2 * 3 * 3
    assert len({(request.group, request.prompt_ids) for request in asked}) == 2 * 3
    assert len({request.group for request in asked}) == 2


def test_questions_of_a_history_stay_with_their_steps_when_one_does_not_fit():
    (trajectory,) = played(lambda _: "win")
    wordy = replace(trajectory.steps[1], response_text="x" * 500)
    odd = replace(trajectory, steps=(trajectory.steps[0], wordy, trajectory.steps[2]))
    short = len(judge().questions(trajectory)[2])
    assert len(judge(max_context=short + 8).questions(trajectory)) == 3
    assert judge(max_context=short + 8).questions(odd) == judge().questions(trajectory)[:1]


def test_a_judge_of_histories_refuses_a_trajectory_that_was_recorded_in_a_chat():
    (trajectory,) = played(lambda _: "win", "chat")
    with pytest.raises(ConfigError, match=r"model\.context = history: step 1 .* `rlanything bootstrap`"):
        judge().questions(trajectory)


@pytest.mark.parametrize(
    ("reply", "verdict", "reasoning"),
    [(f"{THOUGHT}fine: good", 1, "fine"), ("<think>good", None, ""), ("<think>bad</think>", None, "")],
)
def test_a_vote_is_read_after_its_thought(reply, verdict, reasoning):
    asking = Judge(chat_model(lambda _: reply), prompts(), JudgeConfig(m=1, max_tokens=8))
    ((judgement, *_),) = asking.judge(played(lambda _: "win", "chat"), 1, 0)
    (vote,) = judgement.votes
    assert (vote.verdict, vote.reasoning) == (verdict, reasoning)
    assert read(vote.response_ids) == reply


def adapter(reply: str) -> Adapter:
    worker_of = rollout_worker(lambda _: "win")
    config = AdaptationConfig(max_tokens=16, critic="model", attempts=1)
    return Adapter(worker_of.family, chat_model(lambda _: reply), prompts(), config, 60.0)


@pytest.mark.parametrize(
    ("reply", "level"),
    [("<think>level 3?</think>level 7", 7), ("<think>level 7", None), ("level 7</think>", None)],
)
def test_a_rewrite_is_read_after_its_thought_and_stored_with_it(reply, level):
    buffer = World({}).start(task(5)).buffer
    (proposal,) = adapter(reply).propose([(0, Direction.HARDER, 1.0, "")], buffer, 1, 0)
    assert proposal.reply == reply
    assert proposal.task == (None if level is None else task(level))
    assert proposal.reason == (
        "" if level else "the reply says nothing after its thought, or the thought does not end"
    )
