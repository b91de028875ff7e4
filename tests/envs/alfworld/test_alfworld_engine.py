"""The fast engine: its text letter by letter, its rules, its speed."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from envs.alfworld.engines.fast import FastEnvironment
from envs.alfworld.family import AlfworldFamily
from envs.alfworld.games.game import Game, GameError
from envs.alfworld.play.commands import REFUSAL, object_text
from envs.alfworld.play.episode import Episode
from envs.alfworld.play.world import NOTHING, compile_world
from rlanything.core.protocols import Environment, TaskFamily, Teacher
from rlanything.core.types import Task

GOLDEN = Path(__file__).parent / "golden_episode.txt"


def transcript(family: AlfworldFamily, task: Task, seed: int, noise: float) -> str:
    """One demonstration as a player would see it."""
    environment = family.environment()
    lines = [environment.reset(task, 0).text]
    for _, action in family.demonstrate(task, seed, noise):
        result = environment.step(action)
        lines += [f"> {action}", result.observation.text]
    return "\n".join([*lines, f"[done {result.done}, success {result.success}]"]) + "\n"


def test_golden_episode(family: AlfworldFamily) -> None:
    """Delete the file to record it anew; every change to generator, rules or expert shows here."""
    task = AlfworldFamily(task_types=["heat"], levels=["hard"]).make("train", 1, 7)[0]
    text = transcript(family, task, seed=2, noise=0.2)
    if not GOLDEN.exists():
        GOLDEN.write_text(text, encoding="utf-8")
    assert text == GOLDEN.read_text(encoding="utf-8")


def test_the_protocols_are_met(family: AlfworldFamily) -> None:
    checked: TaskFamily = family
    assert checked.name == "alfworld"
    assert isinstance(family, Teacher)
    assert isinstance(family.environment(), Environment)


def test_the_first_text_holds_room_and_instruction(family: AlfworldFamily, tasks: list[Task]) -> None:
    for task in tasks:
        text = family.environment().reset(task, 0).text
        assert text.startswith("-= Welcome to TextWorld, ALFRED! =-\n\nYou are in the middle of a room.")
        assert text.endswith(f"Your task is to: {task.instruction}.")


def test_inadmissible_actions_are_answered_in_text(tasks: list[Task]) -> None:
    environment = FastEnvironment()
    first = environment.reset(tasks[0], 0)
    for action in ("", "fly", "take moon 1 from sky 1", "{__import__('os')}", "go to", "LOOK"):
        result = environment.step(action)
        assert result.observation.text == REFUSAL
        assert result.observation.actions == first.actions
        assert not result.done


def test_steps_need_an_episode_and_end_with_it(family: AlfworldFamily, tasks: list[Task]) -> None:
    environment = FastEnvironment()
    with pytest.raises(RuntimeError, match="call reset first"):
        environment.step("look")
    environment.reset(tasks[0], 0)
    for _, action in family.demonstrate(tasks[0], 0, 0.0):
        result = environment.step(action)
    assert result.done
    assert result.success
    with pytest.raises(RuntimeError, match="call reset first"):
        environment.step("look")
    environment.reset(tasks[0], 0)
    environment.close()
    with pytest.raises(RuntimeError, match="call reset first"):
        environment.step("look")


def test_a_payload_that_is_no_game_is_refused() -> None:
    with pytest.raises(GameError, match="lacks"):
        FastEnvironment().reset(Task("alfworld", "look", {}), 0)


@settings(max_examples=80, deadline=None)
@given(data=st.data(), seed=st.integers(0, 10**6))
def test_random_play_keeps_the_world_whole(data: st.DataObject, seed: int, tasks: list[Task]) -> None:
    """Every object is in one place or in hand, commands are sorted and distinct, and only success ends the game."""
    world = compile_world(Game.from_payload(data.draw(st.sampled_from(tasks)).payload))
    play, rng = Episode(world), random.Random(seed)
    for _ in range(40):
        assert list(play.commands) == sorted(set(play.commands))
        play.step(rng.choice(play.commands))
        state = play.state
        held = [] if state.held == NOTHING else [state.held]
        assert sorted([o for content in state.inside for o in content] + held) == list(
            range(len(world.objects))
        )
        assert {"look", "inventory", "help"} <= set(play.commands)
        if world.is_won(state):
            break


@settings(max_examples=30, deadline=None)
@given(data=st.data(), seed=st.integers(0, 10**6))
def test_the_same_commands_give_the_same_episode(data: st.DataObject, seed: int, tasks: list[Task]) -> None:
    task = data.draw(st.sampled_from(tasks))
    one, two, rng = FastEnvironment(), FastEnvironment(), random.Random(seed)
    seen, again = one.reset(task, seed), two.reset(task, seed + 1)
    for _ in range(20):
        assert seen == again
        action = rng.choice(seen.actions)
        first, second = one.step(action), two.step(action)
        assert first == second
        seen, again = first.observation, second.observation
        if first.done:
            break


def test_texts_of_treated_objects(tasks: list[Task]) -> None:
    """The original's wording: `cold` alone, `cool` in company."""
    world = compile_world(
        Game.from_payload(
            next(t for t in tasks if "apple" in t.instruction or "mug" in t.instruction).payload
        )
    )
    state = world.initial
    thing = next(o for o in range(len(world.objects)) if o not in world.movable | world.toggleable)
    name, one = world.object_names[thing], frozenset([thing])
    assert object_text(world, state, thing) == f"There's nothing special about {name}."
    assert object_text(world, state._replace(cool=one), thing) == f"This is a cold {name}."
    assert object_text(world, state._replace(hot=one), thing) == f"This is a hot {name}."
    assert (
        object_text(world, state._replace(clean=one, cool=one), thing) == f"This is a cool and clean {name}."
    )
    assert object_text(world, state._replace(sliced=one, hot=one), thing) == f"This is a hot sliced {name}."
    assert object_text(world, state._replace(sliced=one), thing) == f"This is a sliced {name}."
