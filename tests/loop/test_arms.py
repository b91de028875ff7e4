"""What the arms differ in: one advantage a trajectory, votes without any outcome, tasks that are replaced."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scripted import World, read, task, voting

from rlanything.config import ArmConfig
from rlanything.loop.batch import LoopState, next_slots, slot_order
from rlanything.loop.group import Group
from rlanything.loop.iteration import IterationResult

SWITCHES = {"step_votes": False, "train_reward": False, "adapt": False}
TRAINED = {"step_votes": True, "train_reward": True, "adapt": False}
OUTCOME = ArmConfig(**SWITCHES, advantage="trajectory")
OUTCOME_STEPS = ArmConfig(**SWITCHES)
STEP_ONLY = ArmConfig(outcome=False, step_votes=True, train_reward=False, adapt=False)


def ragged(world: World, lengths: tuple[int, ...]) -> Group:
    """The group of a task whose rollouts are cut to these lengths."""
    (group,) = world.loop.collect(world.start(task(0))).groups
    episodes = [
        replace(
            e,
            trajectory=replace(e.trajectory, steps=e.trajectory.steps[:n]),
            judgements=e.judgements[:n],
            advantages=None,
        )
        for e, n in zip(group.episodes, lengths, strict=True)
    ]
    return replace(group, episodes=tuple(episodes))


def test_grpo_gives_all_steps_of_a_trajectory_the_advantage_of_its_outcome():
    """One success of four, z = 3 ** 0.5 and -3 ** -0.5. Compared by step index, a failure that is alone gets 0."""
    lengths = (1, 2, 1, 1)
    found = {}
    for name, arm in (("trajectory", OUTCOME), ("step", OUTCOME_STEPS)):
        world = World({0: 1}, arm=arm)
        scored = world.loop.reward_model.score_episodes(ragged(world, lengths))
        found[name] = [e.advantages for e in scored.episodes]
    low = -(3**-0.5)
    assert found["trajectory"] == [
        pytest.approx([3**0.5] * 1),
        *(pytest.approx([low] * n) for n in lengths[1:]),
    ]
    assert found["step"] == [pytest.approx([3**0.5]), *(pytest.approx(x) for x in ([low, 0.0], [low], [low]))]


def test_a_crashed_rollout_has_no_part_in_the_z_score_of_the_others():
    world = World({0: 1}, arm=OUTCOME)
    group = ragged(world, (2, 2, 0, 2))
    (a, b, c, d) = world.loop.reward_model.score_episodes(group).episodes
    assert c.advantages is None
    assert a.advantages == pytest.approx([2**0.5] * 2)
    assert b.advantages == d.advantages == pytest.approx([-(2**-0.5)] * 2)


def split(world: World) -> None:
    """Votes that depend on the rollout: good for even ones, bad for odd ones."""
    world.reward.engine.script = lambda request: ("good", "bad")[int(request.group.split("/")[2]) % 2]


@pytest.mark.parametrize(
    ("wins", "lengths", "trained"), [(0, (2,) * 4, 0), (4, (2,) * 4, 0), (2, (1, 1, 2, 2), 1)]
)
def test_mixed_advantages_are_those_of_the_steps_where_outcomes_differ(wins, lengths, trained):
    """Two successes of one step and two failures of two: only failures have a second step, so it does not train."""
    found = {}
    for kind in ("step", "mixed"):
        arm = ArmConfig(**{**SWITCHES, "step_votes": True}, advantage=kind)
        world = World({0: wins}, arm=arm)
        split(world)
        scored = world.loop.reward_model.score_episodes(ragged(world, lengths))
        found[kind] = [e.advantages for e in scored.episodes]
    assert all(a[-1] for a in found["step"] if len(a) > trained)
    cut = [(*a[:trained], *[0.0] * (len(a) - trained)) for a in found["step"]]
    assert found["mixed"] == cut


def lean(world: World) -> None:
    """Two of three votes are good on the steps of even rollouts, and one on those of odd ones."""
    kinds = voting(("good", "good", "bad")), voting(("good", "bad", "bad"))
    world.reward.engine.script = lambda request: kinds[int(request.group.split("/")[2]) % 2](request)


@pytest.mark.parametrize("own", [0.0, 0.25, 4.0])
def test_an_arm_s_own_vote_weight_is_that_of_its_policy_alone(own):
    """Were the votes on all rollouts the same, no weight would change an advantage: they would cancel out."""
    plain = ArmConfig(**TRAINED)
    worlds = [
        World({0: 1}, arm=ArmConfig(**TRAINED, vote_weight=own), **{"lambda": 1.0}),
        World({0: 1}, arm=plain, **{"lambda": own, "reward_lambda": 1.0}),
        World({0: 1}, arm=plain, **{"lambda": 1.0}),
    ]
    for world in worlds:
        lean(world)
    found = [world.loop.collect(world.start(task(0))) for world in worlds]
    assert found[0].policy == found[1].policy != found[2].policy
    assert found[0].reward == found[1].reward == found[2].reward != ()


@pytest.mark.parametrize("wins", [0, 2, 4])
def test_votes_alone_train_on_a_task_whatever_its_accuracy(wins):
    world = World({0: wins}, arm=STEP_ONLY, policy_min=0.3, policy_max=0.4)
    split(world)
    lessons = world.loop.collect(world.start(task(0))).policy
    assert [list(x.advantages) for x in lessons] == [[1.0, 1.0], [-1.0, -1.0]] * 2


@given(st.lists(st.sampled_from([-1, 1]), min_size=4, max_size=4))
@settings(deadline=None, max_examples=16)
def test_no_outcome_moves_what_votes_alone_teach(outcomes):
    world = World({0: 2}, arm=STEP_ONLY, policy_min=0.5, policy_max=0.5)
    split(world)
    (group,) = world.loop.collect(world.start(task(0))).groups
    turned = replace(
        group,
        episodes=tuple(
            replace(e, trajectory=replace(e.trajectory, outcome=o), advantages=None)
            for e, o in zip(group.episodes, outcomes, strict=True)
        ),
    )
    found = world.loop._score_episodes(turned)
    assert [e.advantages for e in found.episodes] == [e.advantages for e in group.episodes]


def dynamic(wins: dict[int, int], batches: int = 10, tasks: int = 2, **changes) -> World:
    arm = ArmConfig(**{**SWITCHES, "advantage": "trajectory", "max_batches": batches, **changes})
    return World(wins, arm=arm, rollout={"tasks": tasks})


def order(count: int) -> list[int]:
    """The slots in the order in which the first epoch visits them."""
    return slot_order(7, 0, range(count))


def collected(world: World, count: int) -> IterationResult:
    return world.loop.collect(world.start(*(task(k) for k in range(count))))


def test_tasks_without_spread_are_replaced_until_the_batch_is_full():
    first = order(8)
    alike, mixed = {first[0]: 4, first[2]: 0, first[3]: 4}, (1, 4)
    result = collected(dynamic({k: alike.get(k, 2) for k in range(8)}), 8)
    assert [g.slot for g in result.groups] == first[:5]
    assert [g.slot for g in result.groups if g.trains] == [first[k] for k in mixed]
    assert {x.trajectory.slot for x in result.policy} == {first[k] for k in mixed}
    assert len(result.policy) == 8
    assert result.state.cursor == 5
    assert (result.metrics["rolled_out_tasks"], result.metrics["tasks_with_spread"]) == (5.0, 2.0)
    assert result.metrics["accuracy"] == pytest.approx((1.0 + 0.5 + 0.0 + 1.0 + 0.5) / 5)


def test_a_full_batch_is_left_alone():
    result = collected(dynamic(dict.fromkeys(range(8), 2)), 8)
    assert [g.slot for g in result.groups] == order(8)[:2]


@pytest.mark.parametrize(("batches", "tried"), [(1, 2), (2, 4), (3, 6), (4, 8), (10, 8)])
def test_the_search_ends_after_so_many_batches_or_when_every_slot_was_tried(batches, tried):
    """No task has spread: each batch is two new tasks, and there are eight."""
    result = collected(dynamic(dict.fromkeys(range(8), 0), batches), 8)
    assert [g.slot for g in result.groups] == order(8)[:tried]
    assert result.policy == ()


def test_a_batch_that_could_not_be_filled_trains_on_what_it_has():
    wins = {**dict.fromkeys(range(8), 4), order(8)[0]: 1}
    result = collected(dynamic(wins, batches=2), 8)
    assert len(result.groups) == 3
    assert [g.trains for g in result.groups] == [True, False, False]
    assert len(result.policy) == 4


def test_pending_rewrites_are_rolled_out_once_and_take_no_place_in_the_batch():
    arm = {"step_votes": True, "train_reward": True, "adapt": True, "advantage": "step"}
    world = World(
        {0: 0, 1: 0, 2: 0, 3: 0, 9: 2},
        arm=ArmConfig(max_batches=2, **arm),
        adapter=lambda request: "level 9" if "level 0" in read(request.prompt_ids) else "?",
        rollout={"tasks": 1},
    )
    slots = order(4)
    state = world.start(*(task(0 if k == slots[0] else k or 1) for k in range(4)))
    state = world.loop.collect(state).state
    (pending,) = state.pending
    result = world.loop.collect(state)
    assert sum(g.proposal is not None for g in result.groups) == 1
    assert [g.slot for g in result.groups if g.proposal is None].count(pending.slot) == 0
    assert result.state.buffer.head(pending.slot) == task(9)
    assert {x.trajectory.task_id for x in result.policy} == {task(9).task_id}


def test_neither_a_rewrite_nor_the_task_beside_it_takes_a_place_in_the_batch():
    """Paired: the slot's task is rolled out beside its rewrite, and both have spread."""
    wins = {0: 0, 1: 0, 2: 0, 3: 0, 9: 2}
    world = World(
        wins,
        arm=ArmConfig(step_votes=True, train_reward=True, adapt=True, max_batches=2),
        adapter=lambda request: "level 9" if "level 0" in read(request.prompt_ids) else "?",
        rollout={"tasks": 1},
        adaptation={"acceptance": "paired"},
    )
    slots = order(4)
    state = world.start(*(task(0 if k == slots[0] else k or 1) for k in range(4)))
    state = world.loop.collect(state).state
    assert [proposal.slot for proposal in state.pending] == slots[:1]
    wins[0] = 1
    groups = world.loop.collect(state).groups
    assert {g.slot for g in groups if g.has_spread} == {slots[0]}
    assert [g.slot for g in groups if g.slot != slots[0]] == slots[2:]


def test_dynamic_sampling_is_a_function_of_the_state_and_goes_on_from_what_is_stored():
    wins = {k: (0, 2, 4, 1)[k % 4] for k in range(9)}
    one, two = dynamic(wins), dynamic(wins)
    state = one.start(*(task(k) for k in range(9)))
    kept = state
    for _ in range(5):
        ours = one.loop.collect(state)
        theirs = two.loop.collect(kept)
        assert ours == theirs
        state = ours.state
        cursor, tokens = json.loads(json.dumps([state.cursor, state.tokens]))
        kept = LoopState(state.iteration, state.buffer, cursor, state.pending, tokens)


@given(
    st.lists(st.integers(0, 4), min_size=1, max_size=9),
    st.integers(1, 4),
    st.integers(1, 5),
)
@settings(deadline=None, max_examples=60)
def test_whatever_the_tasks_are_the_batch_holds_as_many_with_spread_as_can_be_had(levels, tasks, batches):
    wins = dict(enumerate(levels))
    world = dynamic(wins, batches, tasks)
    state = world.start(*(task(k) for k in range(len(levels))))
    result = world.loop.collect(state)
    slots = [g.slot for g in result.groups]
    kept = [g.slot for g in result.groups if g.trains]
    assert len(set(slots)) == len(slots)
    assert slots == order(len(levels))[: len(slots)]
    assert len(kept) <= tasks
    if batches > 1:
        assert kept == [k for k in slots if wins[k] in (1, 2, 3)]
        full, spent = len(kept) == tasks, len(slots) == len(levels)
        assert full or spent or len(slots) > len(kept)
    assert len(slots) <= tasks * batches


@given(st.integers(1, 12), st.sets(st.integers(0, 11)), st.integers(0, 40), st.integers(0, 15))
@settings(deadline=None, max_examples=80)
def test_next_slots_are_new_ones_in_the_order_of_the_epochs(size, busy, cursor, count):
    slots, busy = range(size), {k for k in busy if k < size}
    found, after = next_slots(7, slots, cursor, busy, count)
    assert len(found) == len(set(found)) == min(count, size - len(busy))
    assert not busy & set(found)
    passed = [slot_order(7, c // size, slots)[c % size] for c in range(cursor, after)]
    assert list(dict.fromkeys(k for k in passed if k not in busy)) == found


def test_tokens_that_were_sampled_are_counted_and_summed_up():
    """Four rollouts of two turns: `win` and its end are 4 tokens, `lose` 5; 24 votes of `good` (5) and `bad` (4)."""
    world = World({0: 2})
    result = world.loop.collect(world.start(task(0)))
    assert result.metrics["policy_tokens"] == 2 * 2 * 4 + 2 * 2 * 5
    assert result.metrics["reward_tokens"] == 8 * (5 + 5 + 4)
    assert result.state.tokens == 36 + 112
    assert world.loop.collect(result.state).state.tokens == 2 * (36 + 112)
    alone = World({0: 2}, arm=OUTCOME)
    result = alone.loop.collect(alone.start(task(0)))
    assert "reward_tokens" not in result.metrics
    assert result.state.tokens == 36
