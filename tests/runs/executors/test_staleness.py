"""One step off: the batch of the next iteration is rolled out before this one is judged, on a fixed schedule."""

from __future__ import annotations

import json

import pytest
from scripted import FULL, World, task

from rlanything.core.errors import MachineError
from rlanything.core.records.rollouts import trajectory_from_json, trajectory_to_json
from rlanything.core.types import EventKind
from rlanything.loop.batch import Batch, LoopState, RolledOut
from rlanything.loop.iteration import IterationResult

WINS = {0: 4, 1: 0, 2: 2, 3: 4, **dict.fromkeys(range(7, 90), 2)}
Ran = tuple[LoopState, Batch, Batch, IterationResult]


def world(**options) -> World:
    """Levels 0 and 3 are too easy, level 1 is too hard, and every rewrite is another level, won twice."""
    chosen = {"rollout": {"tasks": 2}, "staleness": 1, **options}
    levels = iter(range(7, 90))
    return World(WINS, adapter=lambda _: f"level {next(levels)}", **chosen)


def run(made: World, iterations: int = 8) -> list[Ran]:
    """State, batch, the batch that was begun meanwhile, and result of each iteration."""
    state, batch, found = made.start(*(task(k) for k in range(4))), None, []
    for number in range(iterations):
        made.policy.sync(number)
        batch = batch or made.loop.roll_out(state)
        ahead = made.loop.roll_out(made.loop.begun(state, batch))
        result = made.loop.collect(state, batch)
        found.append((state, batch, ahead, result))
        state, batch = result.state, ahead
    return found


OPTIONS = {
    "strict": {},
    "paired": {"adaptation": {"acceptance": "paired"}},
    "dynamic": {"arm": FULL.model_copy(update={"max_batches": 2})},
}


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
def test_a_batch_that_is_begun_early_is_the_batch_of_the_state_that_follows(options):
    made = world(**options)
    for number, (_, _, ahead, result) in enumerate(run(made)):
        made.policy.sync(number)
        assert made.loop.roll_out(result.state) == ahead


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
def test_a_rewrite_is_on_trial_two_iterations_after_it_was_asked_for_and_its_slot_waits(options):
    asked: dict[int, int] = {}
    decided = 0
    for number, (state, batch, _, result) in enumerate(run(world(**options))):
        trials = {group.slot for group in batch.groups if group.proposal is not None}
        assert trials == {slot for slot, begun in asked.items() if begun == number - 2}
        assert all(
            group.task == state.buffer.head(group.slot) for group in batch.groups if not group.proposal
        )
        assert not {g.slot for g in batch.groups if not g.proposal} & set(state.tested)
        for event in result.events:
            if event.kind in (EventKind.ACCEPTED, EventKind.REJECTED):
                assert asked.pop(event.slot) == number - 2
                decided += 1
            else:
                assert event.slot not in asked, "a second rewrite of a slot"
                if event.kind is EventKind.PROPOSED:
                    asked[event.slot] = number
    assert decided >= 2


def test_with_older_weights_too_no_two_slots_get_the_same_task():
    """An offer is open while the next iteration asks for rewrites."""
    made = World(WINS, adapter=lambda _: "level 7", rollout={"tasks": 2}, staleness=1)
    buffer = run(made)[-1][3].state.buffer
    heads = [buffer.head(slot).task_id for slot in buffer.slots]
    assert buffer.accepted == 1
    assert len(set(heads)) == len(heads)


def test_every_episode_names_the_weights_that_sampled_it_and_the_metrics_how_old_they_were():
    for number, (_, batch, _, result) in enumerate(run(world(), 4)):
        age = min(number, 1)
        assert {t.version for t in batch.trajectories} == {number - age}
        assert {t.version for group in result.groups for t in group.trajectories} == {number - age}
        assert result.metrics["staleness"] == age


@pytest.mark.parametrize(("version", "fine"), [(0, False), (1, True), (2, True), (3, False)])
def test_episodes_of_other_weights_are_refused(version, fine):
    made = world()
    state, batch, *_ = run(made, 3)[-1]
    made.policy.sync(version)
    again = Batch(made.loop.roll_out(state).groups, batch.cursor)
    if fine:
        assert made.loop.collect(state, again).metrics["staleness"] == 2 - version
        return
    with pytest.raises(
        MachineError, match=rf"version {version} sampled it, and train.staleness = 1 allows 1 to 2"
    ):
        made.loop.collect(state, again)


def test_by_default_nothing_names_a_version():
    made = world(staleness=0)
    result = made.loop.collect(made.start(*(task(k) for k in range(4))))
    assert {t.version for group in result.groups for t in group.trajectories} == {None}
    assert "staleness" not in result.metrics
    assert (result.state.later, result.state.tested) == ((), ())


def test_a_batch_is_made_again_from_its_episodes():
    made = world()
    _, _, ahead, result = run(made, 4)[-1]
    lines = json.loads(json.dumps([trajectory_to_json(t) for t in ahead.trajectories]))
    episodes = [trajectory_from_json(line) for line in lines]
    assert made.loop.batches.of(result.state, RolledOut(list(episodes))) == ahead
    with pytest.raises(ValueError, match="the episodes of iteration 4 are of other tasks"):
        made.loop.batches.of(result.state, RolledOut(episodes[1:]))
