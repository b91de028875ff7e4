"""The tokens of a plan: the rows that the learner packs and the calls that the loop makes, of the assumed lengths."""

from __future__ import annotations

from itertools import count
from pathlib import Path

import pytest

from rlanything.config import Config, parse
from rlanything.core.types import (
    Judgement,
    Lesson,
    ScoredReplies,
    ScoredTrajectory,
    Status,
    Step,
    Trajectory,
    Vote,
)
from rlanything.learn.packing import Row, policy_rows, reward_rows
from rlanything.planning import compose
from rlanything.planning.costs.assumptions import Assumptions
from rlanything.planning.costs.work.prompts import Questions
from rlanything.planning.costs.work.workload import Calls, Workload, workload

ROOT = Path(__file__).parents[3]
SMALL = ["rollout.max_steps=5", "rollout.max_tokens=7", "judge.max_tokens=9"]
GIVEN = Assumptions(opening_tokens=40, turn_tokens=10, past_tokens=6, guide_tokens=20, action_tokens=3)
POSITIONS = {"policy": 4096, "reward": 4096, "adapter": 16384}

fresh = count(1)
"""Token ids that occur nowhere else, so that prompts share exactly what they are made to share."""


def ids(length: int) -> tuple[int, ...]:
    return tuple(next(fresh) for _ in range(length))


def configuration(*overrides: str) -> Config:
    return parse(compose.compose(["scale=paper", *SMALL, *overrides], ROOT))


def planned(*overrides: str, given: Assumptions = GIVEN, arm: str = "full") -> Workload:
    return workload(configuration(*overrides), arm, POSITIONS, given)


def calls(work: Workload) -> dict[str, Calls]:
    return {each.name: each for each in work.calls}


def episode(config: Config) -> list[tuple[tuple[int, ...], tuple[int, ...]]]:
    """(prompt, response) of every step, of the assumed lengths."""
    guide, commands = ids(GIVEN.opening_tokens - 4), ids(4)
    prompt, past, steps = guide + commands, guide, []
    for _ in range(config.rollout.max_steps):
        response = ids(config.rollout.max_tokens)
        steps.append((prompt, response))
        if config.model.context == "chat":
            prompt = prompt + response + ids(GIVEN.turn_tokens)
        else:
            past = past + ids(GIVEN.past_tokens + GIVEN.action_tokens)
            prompt = past + ids(4)  # a turn without its observation, and so many in the opening
    return steps


def asked(config: Config, steps: list[tuple[tuple[int, ...], tuple[int, ...]]]) -> list[tuple[int, ...]]:
    """The questions about an episode. With history each has the policy's prompt first, which it shares."""
    if config.model.context == "history":
        rest = GIVEN.action_tokens + GIVEN.past_tokens + GIVEN.guide_tokens
        return [prompt + response + ids(rest) for prompt, response in steps]
    trunk, found = ids(GIVEN.opening_tokens), []
    for _ in steps:
        trunk += ids(GIVEN.action_tokens)
        found.append(trunk + ids(GIVEN.turn_tokens))
        trunk += ids(GIVEN.turn_tokens)
    return found


def packed(config: Config) -> tuple[list[Row], list[Row]]:
    """The rows of one episode, as the learner makes them."""
    steps = episode(config)
    taken = [Step(prompt, said, (-1.0,) * len(said), (), "", True, "") for prompt, said in steps]
    trajectory = Trajectory("", 0, 0, 0, "", tuple(taken), 1, Status.OK)
    said = config.judge.max_tokens
    judged = [
        Judgement(q, tuple(Vote(1, "", ids(said), (-1.0,) * said) for _ in range(config.judge.m)))
        for q in asked(config, steps)
    ]
    lessons = ScoredReplies.of([(j, Lesson((1.0,) * config.judge.m, 1.0)) for j in judged])
    acted = ScoredTrajectory(trajectory, (1.0,) * len(taken))
    most = config.learn.micro_batch_tokens
    return policy_rows(acted, "step"), reward_rows(lessons, "step", most)


@pytest.mark.parametrize("context", ["chat", "history"])
@pytest.mark.parametrize("most", [100_000, 200, 60, 30, 1])
def test_rows_are_those_that_the_learner_packs(context, most):
    overrides = (f"model.context={context}", f"learn.micro_batch_tokens={most}")
    work, config = planned(*overrides), configuration(*overrides)
    for name, rows in zip(("policy", "reward"), packed(config), strict=True):
        assert [row.tokens for row in work.rows[name]] == [len(row.ids) for row in rows]
        assert [row.targets for row in work.rows[name]] == [len(row.target) for row in rows]
        assert {row.count for row in work.rows[name]} == {work.episodes}


@pytest.mark.parametrize("context", ["chat", "history"])
def test_a_row_that_no_setting_divides_is_one_question_with_one_vote(context):
    overrides = (f"model.context={context}", "learn.micro_batch_tokens=512")
    work = planned(*overrides)
    least = planned(f"model.context={context}", "learn.micro_batch_tokens=1")
    votes = configuration().rollout.max_steps * configuration().judge.m
    assert len(least.rows["reward"]) == votes
    assert work.undivided == least.longest_row


def test_a_history_makes_prompts_shorter_and_questions_longer():
    chat, history = (planned(f"model.context={name}") for name in ("chat", "history"))
    assert calls(history)["act"].read < calls(chat)["act"].read
    assert calls(history)["judge"].read > calls(chat)["judge"].read
    assert calls(history)["act"].written == calls(chat)["act"].written


@pytest.mark.parametrize("context", ["chat", "history"])
def test_the_native_engine_reads_the_start_of_an_episodes_questions_once(context):
    anew = calls(planned(f"model.context={context}"))
    once = calls(planned(f"model.context={context}", "engine=native"))
    assert once["judge"].read < anew["judge"].read / 3
    assert (once["act"].read < anew["act"].read) == (context == "chat")


def test_an_episode_ends_where_the_context_is_full():
    given, config = GIVEN, configuration("model.context=chat")
    grown = config.rollout.max_tokens + given.turn_tokens
    fits = given.opening_tokens + 2 * grown + config.rollout.max_tokens
    short = workload(config, "full", {**POSITIONS, "policy": fits}, given)
    assert calls(short)["act"].count == 3 * short.episodes
    assert calls(short)["act"].longest == fits
    assert calls(short)["judge"].count == 3 * config.judge.m * short.episodes


def test_questions_that_do_not_fit_are_not_asked():
    config = configuration()
    whole = workload(config, "full", POSITIONS, GIVEN)
    longest = calls(whole)["judge"].longest
    less = workload(config, "full", {**POSITIONS, "reward": longest - 1}, GIVEN)
    assert calls(less)["judge"].count == whole.episodes * config.judge.m * (config.rollout.max_steps - 1)
    assert len(less.rows["policy"]) == config.rollout.max_steps


@pytest.mark.parametrize(("most", "rows"), [(100_000, 1), (16_384, 8), (1, 32)])
def test_tests_are_asked_for_once_a_task_and_their_row_is_cut_to_the_limit(most, rows):
    words = ["scale=paper", "env=coding_data", f"learn.micro_batch_tokens={most}"]
    config = parse(compose.compose(words, ROOT))
    work = workload(config, "full", POSITIONS | {"reward": 32768, "policy": 32768}, GIVEN)
    assert len(work.rows["reward"]) == rows
    assert {row.count for row in work.rows["reward"]} == {2 * config.rollout.tasks}
    targets = sum(row.targets for row in work.rows["reward"])
    assert targets == config.judge.m * config.judge.max_tokens
    assert calls(work)["judge"].count == 2 * config.rollout.tasks * config.judge.m
    assert work.undivided["reward"] == GIVEN.opening_tokens + config.judge.max_tokens - 1


def test_a_critic_has_a_sample_for_each_failed_rollout():
    found = calls(planned())
    assert found["critic"].count == 16 * 8
    assert found["critic"].written == 16 * 8 * 8192
    assert found["adapt"].count == 16 * 8
    assert found["adapt"].at_once == 16


def test_two_stages_of_a_critic_summarise_steps_first():
    one, two = (calls(planned(f"adaptation.critic_stages={n}")) for n in (1, 2))
    assert two["critic, steps"].count == 16 * 8 * 5
    assert two["critic"].count == one["critic"].count
    assert one.keys() == two.keys() - {"critic, steps"}


def test_a_critic_without_a_model_takes_no_calls():
    assert "critic" not in calls(planned("adaptation.critic=extractive"))


def test_a_critic_reads_no_more_than_its_context_holds():
    config = configuration("rollout.max_steps=40")
    given = Assumptions(past_tokens=1000)
    work = workload(config, "full", {**POSITIONS, "policy": 1 << 20}, given)
    assert calls(work)["critic"].longest == POSITIONS["adapter"]


def test_fewer_rewritten_tasks_take_fewer_proposals_critics_and_attempts():
    half = planned(given=Assumptions(rewritten_share=0.5))
    assert half.episodes == 16 * 8 * 1.5
    assert calls(half)["critic"].count == 8 * 8
    assert calls(half)["adapt"].count == 8 * 8


def test_an_arm_with_dynamic_sampling_rolls_out_more_tasks():
    config = configuration()
    arms = {**config.arms, "more": config.arms["outcome"].model_copy(update={"max_batches": 3})}
    work = workload(config.model_copy(update={"arms": arms}), "more", POSITIONS, GIVEN)
    assert work.episodes == 3 * 16 * 8


def test_one_question_is_read_whole():
    assert Questions((100,), own=30, replies=3, reply=10).read == 100
