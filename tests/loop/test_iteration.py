"""One iteration: arms are switches, filters choose what trains, q' decides its slot, events make the buffer."""

from __future__ import annotations

import pytest
from scripted import FULL, Levels, World, read, task

from rlanything.config import ArmConfig
from rlanything.core.signals import policy_advantages
from rlanything.core.types import Direction, EventKind, Request, Status, Task
from rlanything.loop.batch import LoopState, slot_order

OUTCOME = ArmConfig(step_votes=False, train_reward=False, adapt=False)
POLICY = ArmConfig(step_votes=True, train_reward=False, adapt=False)
POLICY_REWARD = ArmConfig(step_votes=True, train_reward=True, adapt=False)
STEP_ONLY = ArmConfig(outcome=False, step_votes=True, train_reward=False, adapt=False)


def kinds(result):
    return [(e.kind, e.slot) for e in result.events]


@pytest.mark.parametrize(
    ("arm", "judged", "rewards", "asked"),
    [
        (OUTCOME, False, False, False),
        (POLICY, True, False, False),
        (POLICY_REWARD, True, True, False),
        (FULL, True, True, True),
        (STEP_ONLY, True, False, False),
    ],
)
def test_an_arm_is_a_row_of_switches(arm, judged, rewards, asked):
    world = World({0: 2, 1: 0}, arm=arm, votes=("good", "bad", "bad"))
    result = world.loop.collect(world.start(task(0), task(1)))
    assert bool(world.reward.engine.asked) == judged
    assert bool(result.reward) == rewards
    assert bool(world.adapter.engine.asked) == bool(result.events) == asked


@pytest.mark.parametrize("stages", [1, 2])
def test_each_model_is_sampled_at_its_own_temperature_and_length(stages):
    """The critic and the adapter are one model, with one section."""
    own = {"policy": (0.5, 9), "reward": (0.6, 10), "adapter": (0.7, 11)}
    policy, reward, adapter = ({"temperature": t, "max_tokens": n} for t, n in own.values())
    world = World(
        {0: 0, 1: 0},
        votes=("bad",),
        adapter=lambda _: r"\boxed{It loses.}",
        rollout=policy,
        judge=reward,
        adaptation={"critic": "model", "critic_stages": stages, "attempts": 2, **adapter},
    )
    result = world.loop.collect(world.start(task(0), task(1)))
    assert result.critics
    assert result.events
    for name, expected in own.items():
        asked = getattr(world, name).engine.asked
        assert {(r.temperature, r.max_tokens) for r in asked} == {expected}


@pytest.mark.parametrize(
    ("low", "high", "way"),
    [
        (0.3, 0.9, Direction.EASIER),
        (0.1, 0.9, None),
        (0.1, 0.2, Direction.HARDER),
    ],
)
def test_the_band_of_the_configuration_says_which_tasks_are_rewritten(low, high, way):
    """One of four rollouts wins."""
    world = World({0: 1}, adaptation={"alpha_low": low, "alpha_high": high})
    events = world.loop.collect(world.start(task(0))).events
    assert [event.direction for event in events] == ([] if way is None else [way])


@pytest.mark.parametrize(("low", "high", "trains"), [(0.3, 0.8, False), (0.1, 0.2, False), (0.1, 0.3, True)])
def test_the_reward_filter_has_the_limits_of_the_configuration(low, high, trains):
    world = World({0: 1}, reward_min=low, reward_max=high)
    assert bool(world.loop.collect(world.start(task(0))).reward) is trains


@pytest.mark.parametrize("steps", [1, 3])
def test_an_episode_ends_at_the_limit_of_steps_of_the_configuration(steps):
    world = World({0: 4}, rollout={"max_steps": steps})
    (group,) = world.loop.collect(world.start(task(0, steps=9))).groups
    assert {(len(t.steps), t.status) for t in group.trajectories} == {(steps, Status.TRUNCATED)}


@pytest.mark.parametrize("scale", ["step", "task"])
def test_the_scale_of_the_configuration_divides_the_advantages(scale):
    world = World({0: 2}, arm=POLICY, advantage_scale=scale)
    world.reward.engine.script = lambda request: "bad" if request.seed % 2 else "good"
    result = world.loop.collect(world.start(task(0)))
    rewards = [world.loop.reward_model.rewards(episode, 1.0) for episode in result.groups[0].episodes]
    other = policy_advantages(rewards, "task" if scale == "step" else "step")
    found = [list(lesson.advantages) for lesson in result.policy]
    assert found == policy_advantages(rewards, scale) != other


def test_the_arms_act_alike_whatever_they_learn_from():
    seen = []
    for arm in (OUTCOME, FULL):
        world = World({0: 2, 1: 1}, arm=arm)
        result = world.loop.collect(world.start(task(0), task(1)))
        seen.append([t for g in result.groups for t in g.trajectories])
    assert seen[0] == seen[1]


def test_without_votes_the_policy_advantages_are_those_of_the_outcomes():
    world = World({0: 1}, arm=OUTCOME)
    lessons = world.loop.collect(world.start(task(0))).policy
    rare, common = pytest.approx([3**0.5] * 2), pytest.approx([-(3**-0.5)] * 2)
    assert [list(x.advantages) for x in lessons] == [rare, common, common, common]


def test_without_the_outcome_equal_votes_leave_nothing_to_learn():
    world = World({0: 2}, arm=STEP_ONLY)
    assert world.loop.collect(world.start(task(0))).policy == ()


@pytest.mark.parametrize("lam", [0.0, 0.5, 4.0])
def test_lambda_weighs_the_votes_against_the_outcome(lam):
    world = World({0: 2}, advantage_scale="step", **{"lambda": lam})
    world.reward.engine.script = lambda request: "bad" if request.seed % 2 else "good"
    result = world.loop.collect(world.start(task(0)))

    def advantages(weight):
        rewards = [world.loop.reward_model.rewards(one, weight) for one in result.groups[0].episodes]
        return policy_advantages(rewards, "step")

    found = [list(lesson.advantages) for lesson in result.policy]
    assert found == advantages(lam) != advantages(lam + 1.0)


def scored(**signals):
    """The policy's and the reward model's lessons of an iteration with two successes of four; votes + + -."""
    world = World({0: 2}, **signals)
    result = world.loop.collect(world.start(task(0)))
    return [x.advantages for x in result.policy], [x.advantages for x in result.reward]


def test_the_reward_models_lambda_is_that_of_the_policy_unless_it_has_its_own():
    assert scored(**{"lambda": 4.0}) == scored(**{"lambda": 4.0, "reward_lambda": 4.0})
    assert scored(**{"lambda": 1.0}) != scored(**{"lambda": 1.0, "reward_lambda": 4.0})


def test_each_lambda_moves_the_lessons_of_its_own_model_alone():
    """At lambda 4 the reward of a failure's step is -1 + 4/3 > 0, so that the majority's votes are rewarded there."""
    policy, reward = scored(**{"lambda": 1.0, "reward_lambda": 1.0})
    again, turned = scored(**{"lambda": 1.0, "reward_lambda": 4.0})
    assert again == policy
    assert [[a > 0 for a in x[0]] for x in reward] == [[True, True, False]] * 2 + [[False, False, True]] * 2
    assert [[a > 0 for a in x[0]] for x in turned] == [[True, True, False]] * 4
    worlds = [World({0: 2, 1: 2}, **{"lambda": x, "reward_lambda": 1.0}) for x in (0.25, 4.0)]
    for world in worlds:
        world.reward.engine.script = lambda request: "bad" if request.seed % 2 else "good"
    found = [world.loop.collect(world.start(task(0), task(1))) for world in worlds]
    assert found[0].reward == found[1].reward != ()
    assert [x.advantages for x in found[0].policy] != [x.advantages for x in found[1].policy]


@pytest.mark.parametrize(("wins", "trains"), [(0, False), (1, True), (3, True), (4, False)])
def test_only_tasks_inside_the_policy_filter_train_the_policy(wins, trains):
    world = World({0: wins}, policy_min=0.25, policy_max=0.75, arm=POLICY)
    assert bool(world.loop.collect(world.start(task(0))).policy) is trains


@pytest.mark.parametrize(("wins", "trains"), [(0, False), (1, True), (2, True), (3, True), (4, False)])
def test_only_tasks_inside_the_reward_filter_train_the_reward_model(wins, trains):
    world = World({0: wins}, reward_min=0.2, reward_max=0.8, reward_balance="none")
    assert bool(world.loop.collect(world.start(task(0))).reward) is trains


def test_unanimous_steps_are_left_out_of_the_reward_lessons():
    world = World({0: 2}, votes=("good", "good", "good"))
    assert world.loop.collect(world.start(task(0))).reward == ()


def test_reward_rows_of_successes_and_failures_weigh_the_same_when_balanced():
    for balance, expected in (("outcome", (2.0, 2 / 3)), ("none", (1.0, 1.0))):
        world = World({0: 1}, reward_balance=balance)
        lessons = world.loop.collect(world.start(task(0))).reward
        assert [x.weights for x in lessons] == [
            pytest.approx((w, w)) for w in (expected[0], *[expected[1]] * 3)
        ]


def test_unanimous_steps_have_no_part_in_the_balance():
    world = World({0: 1}, reward_balance="outcome")
    mixed = world.reward.engine.script

    def script(request: Request) -> str:
        return "good" if read(request.prompt_ids).count("was done") == 1 else mixed(request)

    world.reward.engine.script = script
    lessons = world.loop.collect(world.start(task(0))).reward
    assert [len(x.questions) for x in lessons] == [1] * 4
    assert [x.weights for x in lessons] == [pytest.approx((w,)) for w in (2.0, *[2 / 3] * 3)]


def test_the_reward_advantages_say_which_verdict_agreed_with_the_outcome():
    world = World({0: 2})
    lessons = world.loop.collect(world.start(task(0))).reward
    signs = [[a > 0 for a in lesson.advantages[0]] for lesson in lessons]
    assert signs == [[True, True, False]] * 2 + [[False, False, True]] * 2


def crash_in(broken: Task):
    """A fault of the environments of one task."""

    def fault(self, where: str) -> None:
        if self.task == broken and where == "step":
            raise OSError("no world")

    return fault


def two_levels(request: Request) -> str:
    """Replies of an adapter: another task for each way."""
    return "level 7" if "harder" in read(request.prompt_ids) else "level 5"


def test_tasks_outside_the_band_are_asked_about_and_become_proposals():
    world = World({0: 4, 1: 0, 2: 2}, adapter=two_levels, rollout={"tasks": 3})
    result = world.loop.collect(world.start(task(0), task(1), task(2)))
    assert sorted(kinds(result)) == [(EventKind.PROPOSED, 0), (EventKind.PROPOSED, 1)]
    ways = {p.slot: (p.direction, p.parent_accuracy) for p in result.state.pending}
    assert ways == {0: (Direction.HARDER, 1.0), 1: (Direction.EASIER, 0.0)}
    assert all(result.state.buffer.head(k) == task(k) for k in range(3))


def proposed(wins, new: int, **options):
    """The world and the state after an iteration in which level 1 (never won) got the proposal `new`."""
    world = World({1: 0, **wins}, adapter=lambda _: f"level {new}", **options)
    return world, world.loop.collect(world.start(task(1))).state


def test_an_accepted_task_replaces_its_parent_and_trains_in_the_same_iteration():
    world, state = proposed({9: 2}, 9)
    result = world.loop.collect(state)
    assert kinds(result) == [(EventKind.ACCEPTED, 0)]
    assert (result.events[0].accuracy, result.events[0].parent_accuracy) == (0.5, 0.0)
    assert result.state.buffer.head(0) == task(9)
    assert result.state.pending == ()
    assert {x.trajectory.task_id for x in result.policy} == {task(9).task_id}
    assert len(result.reward) == 4


def test_a_rejected_task_leaves_the_slot_alone_and_trains_nothing():
    world, state = proposed({9: 4}, 9)
    result = world.loop.collect(state)
    assert kinds(result) == [(EventKind.REJECTED, 0)]
    assert "accuracy 1.000 is outside the acceptance band" in result.events[0].reason
    assert result.state.buffer.head(0) == task(1)
    assert [g.trains for g in result.groups] == [False]
    assert (result.policy, result.reward) == ((), ())


def test_rejected_rollouts_inside_the_filters_do_not_train_either():
    world, state = proposed({9: 2}, 9, adaptation={"alpha_low": 0.2, "alpha_high": 0.4})
    result = world.loop.collect(state)
    assert [g.accuracy for g in result.groups] == [0.5]
    assert (kinds(result), result.policy, result.reward) == ([(EventKind.REJECTED, 0)], (), ())


def test_a_rejected_task_is_not_tried_a_second_time():
    world, state = proposed({9: 4}, 9)
    again = world.loop.collect(world.loop.collect(state).state)
    assert kinds(again) == [(EventKind.INVALID, 0)]
    assert again.events[0].reason == "the slot already had or refused this task"
    assert again.state.pending == ()


def test_a_slot_whose_proposal_is_pending_is_not_rolled_out_beside_it_unless_paired():
    for acceptance, levels in (("strict", [9]), ("paired", [1, 9])):
        world, state = proposed({9: 2}, 9, adaptation={"acceptance": acceptance})
        tried = [g.trajectories[0].task_id for g in world.loop.collect(state).groups]
        assert tried == [task(k).task_id for k in levels]


def test_paired_acceptance_compares_with_the_parent_as_it_is_now():
    for now, expected in ((0, EventKind.ACCEPTED), (3, EventKind.REJECTED)):
        wins = {1: 0, 9: 2}
        world = World(wins, adapter=lambda _: "level 9", adaptation={"acceptance": "paired"})
        state = world.loop.collect(world.start(task(1))).state
        wins[1] = now
        (event,) = world.loop.collect(state).events
        assert (event.kind, event.parent_accuracy) == (expected, now / 4)


def test_paired_acceptance_compares_each_rewrite_with_the_parent_of_its_own_slot():
    wins = {1: 0, 2: 0, 8: 2, 9: 2}
    world = World(
        wins,
        adapter=lambda request: "level 8" if "level 1" in read(request.prompt_ids) else "level 9",
        adaptation={"acceptance": "paired"},
    )
    state = world.loop.collect(world.start(task(1), task(2))).state
    wins[2] = 3
    decided = {event.slot: (event.kind, event.parent_accuracy) for event in world.loop.collect(state).events}
    assert decided == {0: (EventKind.ACCEPTED, 0.0), 1: (EventKind.REJECTED, 0.75)}


def test_paired_acceptance_refuses_what_it_cannot_compare(monkeypatch):
    world = World({1: 0, 9: 2}, adapter=lambda _: "level 9", adaptation={"acceptance": "paired"})
    state = world.loop.collect(world.start(task(1))).state
    monkeypatch.setattr(Levels, "_fault", crash_in(task(1)))
    (event,) = world.loop.collect(state).events
    assert (event.kind, event.accuracy) == (EventKind.REJECTED, 0.5)
    assert event.reason == "every rollout of the task that it was to replace crashed"


def test_events_over_the_old_buffer_make_the_new_one():
    wins = {0: 4, 1: 0, 2: 2, 5: 2, 7: 2}
    world = World(wins, adapter=two_levels, rollout={"tasks": 3})
    state = world.start(task(0), task(1), task(2))
    for _ in range(5):
        result = world.loop.collect(state)
        assert state.buffer.apply(result.events).digest == result.state.buffer.digest
        assert result.state.iteration == state.iteration + 1
        assert all(e.iteration == state.iteration for e in result.events)
        state = result.state
    assert state.buffer.accepted == 2


def test_an_iteration_is_a_function_of_its_state():
    def collect():
        world, state = proposed({9: 2}, 9)
        return world.loop.collect(state)

    assert collect() == collect()


def test_a_task_whose_every_rollout_crashed_decides_nothing():
    world = World({0: 2})
    result = world.loop.collect(world.start(task(0, fault="raise in step")))
    assert [g.accuracy for g in result.groups] == [None]
    assert (result.policy, result.reward, result.events, result.state.pending) == ((), (), (), ())
    assert world.reward.engine.asked == []
    assert result.metrics[f"status/{Status.ENV_ERROR.value}"] == 4.0


def test_a_proposal_whose_every_rollout_crashed_is_not_accepted():
    world, state = proposed({9: 2}, 9)
    world.family.environment = Broken
    result = world.loop.collect(state)
    assert kinds(result) == [(EventKind.REJECTED, 0)]
    assert (result.events[0].accuracy, result.events[0].reason) == (None, "every rollout crashed")
    assert result.state.buffer.head(0) == task(1)
    assert (result.policy, result.reward) == ((), ())


class Broken:
    def reset(self, task, seed):
        raise OSError("no world")

    def step(self, action): ...

    def close(self): ...


def test_steps_without_votes_keep_the_outcome_and_their_place():
    world = World({0: 2})
    world.reward.max_context = 110
    result = world.loop.collect(world.start(task(0)))
    (group,) = result.groups
    assert {len(e.judgements) for e in group.episodes} == {1}
    assert world.loop.reward_model.rewards(group.episodes[0], 1.0) == pytest.approx([4 / 3, 1.0])
    assert {len(x.advantages) for x in result.policy} == {2}


def test_every_slot_is_visited_once_an_epoch():
    world = World(dict.fromkeys(range(6), 2), arm=OUTCOME)
    state = world.start(*map(task, range(6)))
    for epoch in range(2):
        visited = []
        for _ in range(3):
            result = world.loop.collect(state)
            visited += [g.slot for g in result.groups]
            state = result.state
        assert sorted(visited) == list(range(6))
        assert visited == slot_order(7, epoch, range(6))


def test_busy_slots_are_skipped_wherever_the_iteration_starts():
    for cursor in range(4):
        world = World({1: 0, 2: 2, 9: 2}, adapter=lambda _: "level 9")
        first = world.loop.collect(world.start(task(1), task(2))).state
        result = world.loop.collect(LoopState(1, first.buffer, cursor, first.pending))
        assert [(g.slot, g.proposal is None) for g in result.groups] == [(1, True), (0, False)]
