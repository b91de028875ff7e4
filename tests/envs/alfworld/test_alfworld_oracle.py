"""The oracle is exact: shortest plans, honest about what was seen, and its good commands reach the goal."""

from __future__ import annotations

import random
from collections import deque
from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from envs.alfworld.family import AlfworldFamily
from envs.alfworld.games.alfred import TASK_TYPES, alfred
from envs.alfworld.games.game import Game
from envs.alfworld.games.ids import class_of
from envs.alfworld.play.commands import apply, local_acts, travel_acts
from envs.alfworld.play.planning import Planner
from envs.alfworld.play.world import State, World, compile_world
from envs.alfworld.tasks.generator import InfeasibleError, Recipe, generate
from envs.alfworld.teacher.oracle import Oracle, Reason
from rlanything.core.types import Task

GOOD = {
    Reason.NEW_PLACE,
    Reason.RIGHT_WAY,
    Reason.TARGET_FOUND,
    Reason.RIGHT_TOOL,
    Reason.RIGHT_PLACE,
    Reason.HANDS_FREED,
    Reason.GOAL_REACHED,
}
USELESS = ("look", "inventory", "help")
ALMOST_NONE = 1e-12
"""Noise that never happens, but is not none."""


def breadth_first(world: World, start: State) -> int:
    """Fewest commands to the goal, by trying everything."""
    seen, queue = {start}, deque([(start, 0)])
    while queue:
        state, depth = queue.popleft()
        if world.is_won(state):
            return depth
        for act in (local_acts(world, state) | travel_acts(world, state.place)).values():
            if act.verb in ("look", "inventory", "help", "examine", "slice", "close"):
                continue
            after = apply(world, state, act)._replace(left=frozenset(), beside=frozenset())
            if after not in seen:
                seen.add(after)
                queue.append((after, depth + 1))
    raise AssertionError("unsolvable")


def small_games() -> list[Game]:
    rng, found = random.Random(4), []
    rooms = [r for r in alfred().rooms.values() if r.split == "train"]
    while len(found) < 30:
        task = sorted(TASK_TYPES)[len(found) % 6]
        recipe = Recipe(task, receptacles=4, distractors=rng.randint(0, 1), copies=rng.randint(1, 2))
        try:
            game = generate(rng.choice(rooms), recipe, rng)
        except InfeasibleError:
            continue
        if len(game.receptacles) <= 5 and len(game.placements) <= 4:
            found.append(game)
    return found


@pytest.mark.parametrize("number", range(30))
def test_the_planned_distance_is_the_shortest(number: int) -> None:
    """Against breadth-first search, from the start and after random commands (so with full hands and open doors)."""
    game = small_games()[number]
    if number % 3 == 0:  # some with receptacles at shared places, as downloaded games have them
        shared = sorted(game.receptacles.values())[0]
        game = replace(
            game, receptacles={r: shared if i < 2 else p for i, (r, p) in enumerate(game.receptacles.items())}
        )
    world = compile_world(game)
    planner, rng, state = Planner(world), random.Random(number), world.initial
    everything = frozenset(range(len(world.objects)))
    for _ in range(4):
        assert planner.distance(state, everything) == breadth_first(world, state._replace(beside=frozenset()))
        for _ in range(3):
            acts = list((local_acts(world, state) | travel_acts(world, state.place)).values())
            state = apply(world, state, rng.choice(acts))
        treated = state.hot | state.cool | state.clean
        if treated & world.targets - {state.held}:
            break  # a treated target put down again: plans keep the held copy, a search may swap it


@settings(max_examples=80, deadline=None)
@given(data=st.data(), seed=st.integers(0, 10**6))
def test_helpful_commands_reach_the_goal_from_anywhere(
    data: st.DataObject, seed: int, tasks: list[Task]
) -> None:
    """After any clumsy start there is always a command that helps, and following them wins soon."""
    task, rng = data.draw(st.sampled_from(tasks)), random.Random(seed)
    oracle = Oracle(compile_world(Game.from_payload(task.payload)))
    for _ in range(rng.randint(0, 25)):
        if not oracle.won:
            oracle.step(rng.choice(oracle.episode.commands))
    limit = 4 * len(oracle.world.receptacles) + 20
    for _ in range(limit):
        if oracle.won:
            break
        helpful = oracle.helpful_commands()
        assert helpful, "no command helps"
        oracle.step(rng.choice(helpful))
    assert oracle.won


@settings(max_examples=80, deadline=None)
@given(data=st.data(), seed=st.integers(0, 10**6))
def test_no_cycle_is_good_twice(data: st.DataObject, seed: int, tasks: list[Task]) -> None:
    """Commands that lead back to where the episode was hold nothing good when they are given again."""
    task, rng = data.draw(st.sampled_from(tasks)), random.Random(seed)
    oracle = Oracle(compile_world(Game.from_payload(task.payload)))
    seen: dict[object, int] = {}
    given: list[str] = []
    while len(given) < 40 and not oracle.won:
        here = (oracle.episode.state, oracle.known, oracle.inspected)
        if here in seen:
            assert not any(oracle.step(command)[1].good for command in given[seen[here] :])
            return
        seen[here] = len(given)
        helpful = oracle.helpful_commands()
        given.append(rng.choice(helpful if rng.random() < 0.5 else oracle.episode.commands))
        assert not oracle.label(given[-1]).good or given[-1] in helpful
        oracle.step(given[-1])


def test_taking_and_putting_back_for_ever_is_good_once(family: AlfworldFamily) -> None:
    task = AlfworldFamily(task_types=["pick"], levels=["easy"]).make("train", 1, 3)[0]
    actions = [action for _, action in family.demonstrate(task, 0, 0.0)]
    take = next(k for k, action in enumerate(actions) if action.startswith("take "))
    thing, place = actions[take].removeprefix("take ").split(" from ")
    cycle = [f"move {thing} to {place}", actions[take]]
    labels = family.label_steps(task, [*actions[: take + 1], *cycle * 5])
    assert labels == [True] * (take + 1) + [False] * 10
    assert family.explain(task, [*actions[: take + 1], *cycle])[-1] == Reason.DONE_BEFORE


def test_hands_are_freed_once_while_searching(family: AlfworldFamily, tasks: list[Task]) -> None:
    """A useless object that is put down is good; taking another one and putting that down is not."""
    found = 0
    for task in tasks:
        oracle = Oracle(compile_world(Game.from_payload(task.payload)))
        freed = 0
        for _ in range(30):
            takes = [c for c in oracle.episode.commands if c.startswith("take ") and not oracle.label(c).good]
            moves = [c for c in oracle.episode.commands if c.startswith("move ")]
            commands = (
                moves or takes or [c for c in oracle.episode.commands if c.startswith(("go ", "open "))]
            )
            label = oracle.step(commands[0])[1]
            freed += label.good and label.reason is Reason.HANDS_FREED
        found += freed
        assert freed <= 1
    assert found


@pytest.mark.parametrize("chance", [0.0, 0.45, 1.0])
def test_the_expert_gives_in_to_habits(tasks: list[Task], chance: float) -> None:
    """A habit follows its command as often as declared, and changes nothing else of a demonstration."""
    plain, habitual = AlfworldFamily(), AlfworldFamily(habits={"look": chance, "inventory": chance})
    moves = takes = looks = checks = 0
    for seed, task in enumerate(tasks * (1 if chance in (0, 1) else 4)):  # what is certain needs no mean
        actions = [action for _, action in habitual.demonstrate(task, seed, ALMOST_NONE)]
        clean = [action for _, action in plain.demonstrate(task, seed, 0.0)]
        assert [a for a in actions if a not in USELESS] == clean
        assert [action for _, action in habitual.demonstrate(task, seed, 0.0)] == clean  # at its best
        moves += sum(a.startswith("go ") for a in actions)
        takes += sum(a.startswith("take ") for a in actions)
        looks, checks = looks + actions.count("look"), checks + actions.count("inventory")
        assert all(before.startswith("go ") for before, a in pairwise(actions) if a == "look")
    assert looks / moves == pytest.approx(chance, abs=0.08)
    assert checks / takes == pytest.approx(chance, abs=0.08)


@settings(max_examples=60, deadline=None)
@given(data=st.data(), seed=st.integers(0, 10**6))
def test_labels_use_only_what_was_seen(data: st.DataObject, seed: int, tasks: list[Task]) -> None:
    """Moving targets among places that the player has not looked into changes no label."""
    task, rng = data.draw(st.sampled_from(tasks)), random.Random(seed)
    game = Game.from_payload(task.payload)
    oracle = Oracle(compile_world(game))
    commands, verdicts = [], []
    for _ in range(rng.randint(1, 12)):
        command = rng.choice(oracle.helpful_commands() if rng.random() < 0.6 else oracle.episode.commands)
        commands.append(command)
        verdicts.append(oracle.step(command)[1])
        if oracle.won:
            return
    world = oracle.world
    if oracle.known & world.targets:
        return
    unseen = [
        world.receptacles[r]
        for r in range(len(world.receptacles))
        if r not in oracle.inspected and alfred().can_hold(world.receptacle_classes[r], game.goal.target)
    ]
    places = [r for r in unseen if class_of(r) != game.goal.destination]
    moved = {
        o: rng.choice(places) if class_of(o) == game.goal.target else r for o, r in game.placements.items()
    }
    other = Oracle(compile_world(replace(game, placements=moved)))
    assert [other.step(c)[1] for c in commands] == verdicts


def test_demonstrations_without_noise_are_all_good(family: AlfworldFamily, tasks: list[Task]) -> None:
    for seed, task in enumerate(tasks):
        actions = [action for _, action in family.demonstrate(task, seed, 0.0)]
        assert all(family.label_steps(task, actions))
        assert set(family.explain(task, actions)) <= {str(r) for r in GOOD}
        assert family.explain(task, actions)[-1] == Reason.GOAL_REACHED


def test_labels_and_reasons_agree(family: AlfworldFamily, tasks: list[Task]) -> None:
    seen = set()
    for seed, task in enumerate(tasks * 2):
        actions = [action for _, action in family.demonstrate(task, seed, 0.6)]
        labels, reasons = family.label_steps(task, actions), family.explain(task, actions)
        assert len(labels) == len(reasons) == len(actions)
        assert labels == [Reason(r) in GOOD for r in reasons]
        seen |= {Reason(r) for r in reasons}
    assert seen >= set(Reason) - {Reason.NOT_POSSIBLE}
    assert all(1 <= len(r.split()) <= 4 for r in Reason)


def test_useless_commands_are_never_good(tasks: list[Task]) -> None:
    for seed, task in enumerate(tasks):
        oracle, rng = Oracle(compile_world(Game.from_payload(task.payload))), random.Random(seed)
        for _ in range(25):
            if oracle.won:
                break
            for command in oracle.episode.commands:
                if command in USELESS or command.split()[0] in ("examine", "close", "slice"):
                    assert not oracle.label(command).good, command
            oracle.step(rng.choice(oracle.episode.commands))


def test_going_back_and_putting_back_are_bad(family: AlfworldFamily) -> None:
    task = AlfworldFamily(task_types=["pick"], levels=["easy"]).make("train", 1, 3)[0]
    oracle = Oracle(compile_world(Game.from_payload(task.payload)))
    visited: list[str] = []
    while not any(c.startswith("take ") and c in oracle.helpful_commands() for c in oracle.episode.commands):
        for place in visited[:-1]:
            verdict = oracle.label(place)
            assert not verdict.good
            assert verdict.reason in (Reason.ALREADY_SEEN, Reason.NO_PROGRESS)
        command = oracle.helpful_commands()[0]
        visited += [command] if command.startswith("go to") else []
        oracle.step(command)
    take = next(c for c in oracle.helpful_commands() if c.startswith("take "))
    oracle.step(take)
    thing, place = take.removeprefix("take ").split(" from ")
    assert oracle.label(f"move {thing} to {place}") == (False, Reason.WRONG_PLACE)


def test_impossible_actions_and_actions_after_the_end(family: AlfworldFamily, tasks: list[Task]) -> None:
    actions = [action for _, action in family.demonstrate(tasks[0], 0, 0.0)]
    labels = family.label_steps(tasks[0], ["dance", *actions, "look"])
    assert labels == [False, *[True] * len(actions), False]
    assert family.explain(tasks[0], ["dance", *actions, "look"])[0] == "not possible"


def test_the_expert_is_seeded_and_checked(family: AlfworldFamily, tasks: list[Task]) -> None:
    task = tasks[3]
    assert family.demonstrate(task, 1, 0.5) == family.demonstrate(task, 1, 0.5)
    assert family.demonstrate(task, 1, 0.9) != family.demonstrate(task, 2, 0.9)
    assert len(family.demonstrate(task, 0, 1.0)) <= 100
    with pytest.raises(ValueError, match="noise"):
        family.demonstrate(task, 0, 1.5)


def test_noise_makes_demonstrations_longer(family: AlfworldFamily, tasks: list[Task]) -> None:
    def total(noise: float) -> int:
        return sum(len(family.demonstrate(t, s, noise)) for s, t in enumerate(tasks))

    assert total(0.0) < total(0.3) < total(0.6)


def test_demonstrations_are_playable(family: AlfworldFamily, tasks: list[Task]) -> None:
    """Observations are what the environment gives for the same actions."""
    for seed, task in enumerate(tasks[:20]):
        environment = family.environment()
        seen = environment.reset(task, 0)
        for observation, action in family.demonstrate(task, seed, 0.3):
            assert observation == seen
            result = environment.step(action)
            seen = result.observation
        assert result.success
