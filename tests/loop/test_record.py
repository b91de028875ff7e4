"""What a run stores of an iteration's episodes, and that it says what each of them taught."""

from __future__ import annotations

import json

from scripted import World, task

from rlanything.config import ArmConfig
from rlanything.loop.record import Episode, episode_records

VOTES = ("good", "good", "bad")


def harvested(**changed):
    world = World({0: 1, 1: 3, 2: 4}, votes=VOTES, rollout={"tasks": 3}, **changed)
    return world.loop.collect(world.start(task(0), task(1), task(2)))


def stored(harvest):
    return [Episode.from_json(json.loads(json.dumps(record))) for record in episode_records(harvest)]


def test_every_episode_is_stored_in_order_and_read_back_as_it_was():
    harvest = harvested()
    pairs = [pair for g in harvest.groups for pair in zip(g.trajectories, g.judgements, strict=True)]
    assert [(e.trajectory, e.judgements) for e in stored(harvest)] == pairs


def test_an_episode_is_stored_with_the_advantages_it_trained_with():
    harvest = harvested()
    policy = {lesson.trajectory: list(lesson.advantages) for lesson in harvest.policy}
    episodes = stored(harvest)
    assert policy
    assert [e.lesson["policy"] for e in episodes] == [policy.get(e.trajectory) for e in episodes]


def test_every_lesson_of_the_reward_model_is_stored_once_with_its_weight():
    harvest = harvested()
    taught = [x for e in stored(harvest) for x in e.lesson["reward"] if x is not None]
    expected = [
        {"advantages": list(advantages), "weight": weight}
        for lesson in harvest.reward
        for advantages, weight in zip(lesson.advantages, lesson.weights, strict=True)
    ]
    assert expected
    assert taught == expected


def test_what_does_not_train_has_no_lesson():
    harvest = harvested(arm=ArmConfig(step_votes=True, train_reward=False, adapt=False))
    solved_always = [e for e in stored(harvest) if e.trajectory.slot == 2]
    assert solved_always
    assert all(e.lesson == {"policy": None, "reward": [None, None]} for e in solved_always)
