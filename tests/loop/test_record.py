"""What a run stores of an iteration's episodes says what each of them taught; what it keeps is enough to go on."""

from __future__ import annotations

import json

import pytest
from scripted import World, task

from rlanything.buffer import read_snapshot, write_snapshot
from rlanything.config import ArmConfig
from rlanything.core.records.rollouts import proposal_from_json, proposal_to_json
from rlanything.core.types import Direction, EventKind, Lesson, Proposal
from rlanything.loop.batch import LoopState
from rlanything.loop.critic import CriticRecord
from rlanything.loop.record import EpisodeRecord, episode_records
from rlanything.rewards.unit_tests.records import UnitTestRecord

VOTES = ("good", "good", "bad")
MOST = (1 << 63) - 1


def collected(**changed):
    world = World({0: 1, 1: 3, 2: 4}, votes=VOTES, rollout={"tasks": 3}, **changed)
    return world.loop.collect(world.start(task(0), task(1), task(2)))


def stored(result):
    records = episode_records(result.groups)
    return [EpisodeRecord.from_json(json.loads(json.dumps(record))).episode for record in records]


def test_every_episode_is_stored_in_order_and_read_back_as_it_was():
    result = collected()
    assert stored(result) == [episode for group in result.groups for episode in group.episodes]


def test_an_episode_is_stored_with_the_advantages_it_trained_with():
    result = collected()
    policy = {lesson.trajectory: lesson.advantages for lesson in result.policy}
    episodes = stored(result)
    assert policy
    assert [e.advantages for e in episodes] == [policy.get(e.trajectory) for e in episodes]


def test_every_lesson_of_the_reward_model_is_stored_once_with_its_weight():
    result = collected()
    taught = [x for e in stored(result) for x in e.lessons if x is not None]
    expected = [
        Lesson(advantages, weight)
        for lesson in result.reward
        for advantages, weight in zip(lesson.advantages, lesson.weights, strict=True)
    ]
    assert expected
    assert taught == expected


def test_a_lesson_has_an_advantage_for_every_vote():
    record = next(r for r in episode_records(collected().groups) if r["lesson"]["reward"][0])
    record["lesson"]["reward"][0]["advantages"].pop()
    with pytest.raises(ValueError, match="2 advantages for 3 votes"):
        EpisodeRecord.from_json(record)


def test_what_does_not_train_has_no_lesson():
    result = collected(arm=ArmConfig(step_votes=True, train_reward=False, adapt=False))
    solved_always = [e for e in stored(result) if e.trajectory.slot == 2]
    assert solved_always
    assert all((e.advantages, e.lessons) == (None, ()) for e in solved_always)
    lines = [r["lesson"] for r in episode_records(result.groups) if r["trajectory"]["slot"] == 2]
    assert all(line == {"policy": None, "reward": [None, None]} for line in lines)


def test_the_records_of_a_critic_and_of_tests_have_the_same_bounds():
    critique = {"rollout": 0, "step": 1, "seed": 5, "left_out": 0, "reply": "", "summary": "", "reason": ""}
    record = {"slot": 0, "task_id": "t", "text": "", "critiques": [critique]}
    for key in ("rollout", "step", "seed", "left_out"):
        with pytest.raises(
            ValueError, match=rf"^critiques\.0\.{key}.*: Input should be less than or equal to {MOST}"
        ):
            CriticRecord.from_json({**record, "critiques": [{**critique, key: MOST + 1}]})
    for read in (CriticRecord.from_json, UnitTestRecord.from_json):
        with pytest.raises(ValueError, match=rf"^slot: Input should be less than or equal to {MOST}"):
            read({**record, "slot": MOST + 1})


def adapting() -> World:
    """Level 1 is always won and asks for level 7, which is won half of the time; level 2 is as it should be."""
    return World({1: 4, 2: 2, 7: 2}, adapter=lambda _: "level 7")


def read_again(state: LoopState, folder) -> LoopState:
    """The state as a killed process leaves it: JSON and a snapshot of the buffer."""
    write_snapshot(state.buffer, folder / "buffer.jsonl")
    text = json.dumps(
        [state.iteration, state.cursor, state.tokens, [proposal_to_json(p) for p in state.pending]]
    )
    iteration, cursor, tokens, pending = json.loads(text)
    buffer = read_snapshot(folder / "buffer.jsonl")
    return LoopState(iteration, buffer, cursor, tuple(proposal_from_json(p) for p in pending), tokens)


def test_a_resumed_loop_decides_the_proposals_that_were_pending(tmp_path):
    first = adapting()
    before = first.loop.collect(first.start(task(1), task(2))).state
    assert [p.task for p in before.pending] == [task(7)]
    resumed = adapting().loop.collect(read_again(before, tmp_path))
    assert [e.kind for e in resumed.events] == [EventKind.ACCEPTED]
    assert resumed.state.buffer.head(0) == task(7)


def test_a_resumed_loop_and_one_that_was_never_stopped_collect_the_same(tmp_path):
    resumed, alone = adapting(), adapting()
    kept = state = alone.start(task(1), task(2))
    for _ in range(4):
        kept, state = resumed.loop.collect(read_again(kept, tmp_path)), alone.loop.collect(state)
        assert kept == state
        kept, state = kept.state, state.state
    assert state.buffer.accepted == 1


def test_a_proposal_survives_json_with_and_without_a_task():
    for made in (task(7), None):
        proposal = Proposal(
            3, Direction.EASIER, "parent", 0.125, "critic", "prompt", "reply → 猫", 2**62, 5, made, "why"
        )
        assert proposal_from_json(json.loads(json.dumps(proposal_to_json(proposal)))) == proposal
