"""The edit `tokens`: an adapter changes the goal's two types, nothing else, and reads the scene's facts in English."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from envs.alfworld import files
from envs.alfworld.family import AlfworldFamily
from envs.alfworld.games.alfred import TASK_TYPES, TOOLS, alfred
from envs.alfworld.games.game import Game, Goal
from envs.alfworld.games.ids import class_of
from envs.alfworld.tasks.proposal import read_wish
from envs.alfworld.tasks.sampling import task_of
from envs.alfworld.teacher.difficulty import expected_steps
from rlanything.core.types import Direction, InvalidProposal, Task

TOKENS = AlfworldFamily(edit="tokens")
GOAL_PARTS = {"pddl_params", "knobs", "annotated"}
"""What of a payload two types of the goal decide; knobs are measures of the game."""


def game_of(task: Task) -> Game:
    return Game.from_payload(task.payload)


def pairs(task: Task) -> list[tuple[str, str]]:
    """Every object type with every receptacle (or object, as a lamp) type of the room, and one that is not there."""
    game = game_of(task)
    things = {class_of(o).lower() for o in game.placements} | {"anvil"}
    seconds = {class_of(r).lower() for r in game.receptacles} | things
    return [(a, b) for a in sorted(things) for b in sorted(seconds)]


def line(task: Task, target: str, second: str) -> str:
    return f"task: {game_of(task).goal.task} object: {target} receptacle: {second}"


def parsed(parent: Task, reply: str) -> Task | None:
    """The child, or None when the reply is refused. Anything but `InvalidProposal` fails the test."""
    try:
        return TOKENS.parse(parent, reply)
    except InvalidProposal:
        return None


def first_child(parent: Task) -> Task:
    """The first other pair of types that the room allows."""
    return next(child for pair in pairs(parent) if (child := parsed(parent, line(parent, *pair))))


def test_a_goal_that_is_changed_and_changed_back_is_the_same_exercise(tasks: list[Task]) -> None:
    """Its sentence is drawn again, so it has another id in some of the games."""
    again = []
    for parent in tasks:
        goal, child = game_of(parent).goal, first_child(parent)
        back = parsed(child, line(parent, goal.target.lower(), (goal.destination or goal.lamp).lower()))
        assert TOKENS.exercise(child) != TOKENS.exercise(parent)
        if back is not None:
            assert TOKENS.exercise(back) == TOKENS.exercise(parent)
            again.append(back.task_id == parent.task_id)
    assert False in again


@settings(max_examples=200, deadline=None)
@given(data=st.data())
def test_two_types_change_and_nothing_else(data: st.DataObject, tasks: list[Task]) -> None:
    parent = data.draw(st.sampled_from(tasks))
    pair = data.draw(st.sampled_from(pairs(parent)))
    child = parsed(parent, line(parent, *pair))
    if child is None:
        return
    assert TOKENS.validate(child) == ""
    changed = {
        key for key in {*parent.payload, *child.payload} if parent.payload.get(key) != child.payload.get(key)
    }
    assert "pddl_params" in changed <= GOAL_PARTS
    goal = game_of(child).goal
    assert (goal.target.lower(), (goal.destination or goal.lamp).lower()) == pair
    assert goal.task == game_of(parent).goal.task
    assert child.instruction in goal.sentences
    assert child.instruction not in game_of(parent).goal.sentences


@pytest.mark.parametrize(
    ("reply", "says"),
    [
        ("task: {other} object: {obj} receptacle: {to}", "the kind of task must stay cool, not pick: only the types"),
        ("task: cool object: {obj} receptacle: {to} copies: 2", "the reply sets copies: only the types"),
        ("task: cool object: {obj} receptacle: {to} hidden: no destinations: 1", "sets hidden and destinations"),
        ("task: cool object: {obj} receptacle: {to}", "the task that there is already"),
        ("task: cool object: anvil receptacle: {to}", "there is no anvil in the room"),
        ("task: cool object: {obj} receptacle: moon", "there is no moon in the room"),
        ("task: cool object: {obj} receptacle: fridge", "it must go elsewhere"),
        ("object: {obj} receptacle: {to}", "has no line of the form"),
        ("", "has no line of the form"),
    ],
)  # fmt: skip
def test_what_changes_more_than_two_types_or_cannot_be_is_refused_with_a_reason(
    reply: str, says: str
) -> None:
    parent = AlfworldFamily(task_types=["cool"]).make("train", 1, 2)[0]
    goal = game_of(parent).goal
    filled = reply.format(other="pick", obj=goal.target.lower(), to=goal.destination.lower())
    with pytest.raises(InvalidProposal, match=says):
        TOKENS.parse(parent, filled)


def test_two_of_a_kind_need_two_in_the_room() -> None:
    for parent in AlfworldFamily(task_types=["two"]).make("train", 20, 2):
        game = game_of(parent)
        single = [o for o in game.placements if len(game.objects_of(class_of(o))) == 1]
        where = game.goal.destination
        lone = [class_of(o) for o in single if alfred().can_hold(where, class_of(o))]
        if lone:
            with pytest.raises(
                InvalidProposal, match=f"needs 2 {lone[0].lower()} that can be taken, and the room has 1"
            ):
                TOKENS.parse(parent, line(parent, lone[0].lower(), where.lower()))
            return
    raise AssertionError("no room to try it in")


def test_a_goal_that_holds_from_the_start_is_refused(tasks: list[Task]) -> None:
    for parent in tasks:
        game = game_of(parent)
        if game.goal.task != "pick":
            continue
        for o, r in game.placements.items():
            target, place = class_of(o), class_of(r)
            if alfred().can_hold(place, target):
                with pytest.raises(InvalidProposal, match="the goal holds from the start"):
                    TOKENS.parse(parent, line(parent, target.lower(), place.lower()))
                return


def test_the_adapter_reads_the_facts_of_the_scene_in_english(tasks: list[Task]) -> None:
    for task in tasks:
        game, text = game_of(task), TOKENS.describe(task)
        for kind in {class_of(o) for o in game.placements}:
            assert f"- {kind.lower()}, {len(game.objects_of(kind))}: {kind.lower()} " in text
        for kind in {class_of(r) for r in game.receptacles}:
            assert f"- {kind.lower()}, {len(game.receptacles_of(kind))}: {kind.lower()} " in text
            held = re.search(rf"What can be put where:\n(?:- .*\n)*- {kind.lower()}: (.*)\n", text)[1]
            things = {class_of(o) for o in game.placements if alfred().can_hold(kind, class_of(o))}
            assert held == (", ".join(sorted(t.lower() for t in things)) or "nothing")
        for word, table in (("cleaned", "Cleanable"), ("heated", "Heatable"), ("cooled", "Coolable")):
            able = {class_of(o) for o in game.placements} & alfred().affords[table]
            assert f"Can be {word}: {', '.join(sorted(a.lower() for a in able)) or 'nothing'}\n" in text
        for kind, tool in TOOLS.items():
            assert (f"a {tool.lower()} ({kind})" in text) == bool(game.receptacles_of(tool))
        assert game.goal.sentences[0] in text
        assert "\nHarder: " in text
        assert "\nEasier: " in text


def test_descriptions_end_with_the_present_task_as_a_reply(tasks: list[Task]) -> None:
    for task in tasks:
        text = TOKENS.describe(task)
        last = text.splitlines()[-1]
        assert read_wish(text).line == last
        with pytest.raises(InvalidProposal, match="the task that there is already"):
            TOKENS.parse(task, last)


def test_the_teacher_moves_the_difficulty_where_the_room_allows_it(tasks: list[Task]) -> None:
    for way, sign in ((Direction.HARDER, 1), (Direction.EASIER, -1)):
        done = 0
        for seed, task in enumerate(tasks):
            try:
                reply = TOKENS.rewrite(task, way, seed)
            except InvalidProposal:
                continue
            child = TOKENS.parse(task, reply)
            assert TOKENS.validate(child) == ""
            assert sign * (expected_steps(game_of(child)) - expected_steps(game_of(task))) > 0
            assert TOKENS.rewrite(task, way, seed) == reply
            done += 1
        assert done > len(tasks) / 2


@settings(max_examples=200, deadline=None)
@given(data=st.data(), reply=st.text(max_size=200))
def test_any_text_is_refused_or_valid(data: st.DataObject, reply: str, tasks: list[Task]) -> None:
    child = parsed(data.draw(st.sampled_from(tasks[:5])), reply)
    assert child is None or TOKENS.validate(child) == ""


def test_games_of_the_downloaded_set_change_their_types_and_lose_a_persons_sentence(
    tasks: list[Task], tmp_path: Path
) -> None:
    """Through the files that the set has, with facts that the tables do not give."""
    for task in tasks[:10]:
        game = replace(
            game_of(task), annotated=True, added=(f"isCool {sorted(game_of(task).placements)[0]}",)
        )
        asked = replace(task_of(game), instruction="please do what I say")
        if TOKENS.validate(asked):
            continue
        parent = files.read_game(files.write_game(asked, tmp_path))
        assert parent.instruction == "please do what I say"
        child = first_child(parent)
        assert child.instruction in game_of(child).goal.sentences
        assert child.payload["added"] == parent.payload["added"]
        again = files.read_game(files.write_game(child, tmp_path))
        assert again == replace(child, metadata=again.metadata)
        environment = AlfworldFamily(edit="tokens").environment()
        assert child.instruction in environment.reset(child, 0).text


def test_an_object_that_the_game_forbids_to_take_makes_no_goal(tasks: list[Task]) -> None:
    """Solvability is checked in the game as it is, not by the tables."""
    parent = next(t for t in tasks if game_of(t).goal.task == "pick")
    child = first_child(parent)
    goal = game_of(child).goal
    gone = tuple(f"pickupable {o}" for o in game_of(parent).objects_of(goal.target))
    locked = task_of(replace(game_of(parent), removed=gone))
    with pytest.raises(InvalidProposal, match="that can be taken, and the room has 0"):
        TOKENS.parse(locked, line(locked, goal.target.lower(), goal.destination.lower()))


def test_an_unknown_edit_is_named_with_what_is_allowed() -> None:
    with pytest.raises(ValueError, match=r"edit.*'words'.*scene.*tokens"):
        AlfworldFamily(edit="words")


def test_every_kind_of_task_has_a_rubric_and_a_framework(tasks: list[Task]) -> None:
    seen = set()
    for task in tasks:
        goal: Goal = game_of(task).goal
        seen.add(goal.task)
        frame = re.search(r"^Its framework: (.*)$", TOKENS.describe(task), re.MULTILINE)[1]
        second = (goal.destination or goal.lamp).lower()
        said = (
            frame.replace("OBJECT", goal.target.lower()).replace("RECEPTACLE", second).replace("LAMP", second)
        )
        assert said == goal.sentences[0]
    assert seen == set(TASK_TYPES)
