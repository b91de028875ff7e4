"""Adaptation: the facts are short, replies are read from untrusted text, and rewrites move the difficulty."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from statistics import mean

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.alfworld_difficulty import ROWS, measured
from envs.alfworld.family import AlfworldFamily
from envs.alfworld.games.alfred import TASK_TYPES
from envs.alfworld.games.game import Game
from envs.alfworld.games.ids import class_of
from envs.alfworld.play.world import compile_world
from envs.alfworld.tasks.proposal import read_wish, wish_of
from envs.alfworld.tasks.sampling import task_of
from envs.alfworld.teacher.difficulty import expected_steps
from envs.alfworld.teacher.expert import demonstrate
from rlanything.core.types import Direction, InvalidProposal, Task

CHATTER = (
    "Let me think. The task: heat something? object: anvil receptacle: moon.\n"
    "It seems that {} would be good, but wait.\n\nMy final answer:\n**{}**\nI hope that this helps!"
)


def game_of(task: Task) -> Game:
    return Game.from_payload(task.payload)


def parsed(family: AlfworldFamily, parent: Task, reply: str) -> Task | None:
    """The child, or None when the reply is refused. Anything but `InvalidProposal` fails the test."""
    try:
        return family.parse(parent, reply)
    except InvalidProposal:
        return None


def kitchen(task: str, **knobs: object) -> Task:
    """A task in a kitchen that has the tools."""
    family = AlfworldFamily(task_types=[task], **knobs)  # type: ignore[arg-type]
    made = family.make("train", 60, 2)
    return next(t for t in made if "tasks: pick clean heat cool two" in family.describe(t))


@settings(max_examples=60, deadline=None)
@given(data=st.data(), seed=st.integers(0, 10**6), way=st.sampled_from(list(Direction)))
def test_rewrites_parse_to_valid_tasks_of_the_same_room(
    data: st.DataObject, seed: int, way: Direction, family: AlfworldFamily, tasks: list[Task]
) -> None:
    parent = tasks[data.draw(st.integers(0, len(tasks) - 1))]
    reply = family.rewrite(parent, way, seed)
    child = family.parse(parent, reply)
    assert family.validate(child) == ""
    assert child.task_id != parent.task_id
    assert wish_of(game_of(child)).line == reply
    before, after = game_of(parent), game_of(child)
    assert after.scene == before.scene
    kept = [r for r in before.receptacles if r in after.receptacles]
    assert all(after.receptacles[r] == before.receptacles[r] for r in kept)
    changed_kinds = {class_of(r) for r in set(before.receptacles) ^ set(after.receptacles)}
    assert changed_kinds <= {after.goal.destination}
    if not changed_kinds:  # the furniture stayed: so did everything but the new target
        others = {o: r for o, r in before.placements.items() if class_of(o) != after.goal.target}
        assert others == {o: r for o, r in after.placements.items() if class_of(o) != after.goal.target}


@settings(max_examples=30, deadline=None)
@given(data=st.data(), seed=st.integers(0, 10**6))
def test_chatter_and_key_order_change_nothing(
    data: st.DataObject, seed: int, family: AlfworldFamily, tasks: list[Task]
) -> None:
    parent = tasks[data.draw(st.integers(0, len(tasks) - 1))]
    reply = family.rewrite(parent, Direction.HARDER, seed)
    child = family.parse(parent, reply)
    assert family.parse(parent, CHATTER.format(wish_of(game_of(parent)).line, reply)) == child
    shuffled = Task.from_json(json.loads(json.dumps(parent.to_json(), sort_keys=True)))
    assert family.parse(shuffled, reply) == child
    assert family.parse(parent, reply.upper().replace(" OBJECT", "\n- OBJECT")) == child


@settings(max_examples=200, deadline=None)
@given(data=st.data(), reply=st.text(max_size=200))
def test_any_text_is_refused_or_valid(
    data: st.DataObject, reply: str, family: AlfworldFamily, tasks: list[Task]
) -> None:
    parent = tasks[data.draw(st.integers(0, 4))]
    child = parsed(family, parent, reply)
    assert child is None or family.validate(child) == ""


@settings(max_examples=200, deadline=None)
@given(data=st.data())
def test_any_well_formed_line_is_refused_or_valid(
    data: st.DataObject, family: AlfworldFamily, tasks: list[Task]
) -> None:
    parent = tasks[data.draw(st.integers(0, len(tasks) - 1))]
    game = game_of(parent)
    things = sorted({class_of(o).lower() for o in game.placements} | {"anvil"})
    places = sorted({class_of(r).lower() for r in game.receptacles} | {"desklamp", "moon"})
    line = (
        f"task: {data.draw(st.sampled_from(sorted(TASK_TYPES)))} object: {data.draw(st.sampled_from(things))} "
        f"receptacle: {data.draw(st.sampled_from(places))} copies: {data.draw(st.integers(0, 7))} "
        f"hidden: {data.draw(st.sampled_from(['yes', 'no']))} destinations: {data.draw(st.integers(0, 7))}"
    )
    child = parsed(family, parent, line)
    if child is None:
        return
    assert family.validate(child) == ""
    wish = read_wish(line)
    assert child.payload["knobs"]["copies"] == max(wish.copies or 0, 2 if wish.task == "two" else 1)
    assert child.payload["knobs"]["hidden"] == wish.hidden
    assert wish.task == "look" or child.payload["knobs"]["destinations"] == wish.destinations


@pytest.mark.parametrize(
    ("reply", "says"),
    [
        ("I cannot do that.", "has no line of the form"),
        ("", "has no line of the form"),
        ("task: heat", "does not say object and receptacle"),
        ("task: fly object: mug receptacle: fridge", "task 'fly' is not one of"),
        ("task: pick object: anvil receptacle: fridge", "there is no anvil in the room"),
        ("task: pick object: {obj} receptacle: moon", "there is no moon in the room"),
        ("task: look object: {obj} receptacle: fridge", "no lamp in the room"),
        (
            "task: pick object: {obj} receptacle: toaster",
            "there is no toaster in the room|cannot be put into",
        ),
        ("task: two object: {obj} receptacle: countertop copies: 1", "task two needs at least 2 copies"),
        ("task: pick object: {obj} receptacle: {to} copies: 99", "copies must be a number from 1 to 5"),
        (
            "task: pick object: {obj} receptacle: {to} copies: 0000000019",
            "copies must be a number from 1 to 5",
        ),
        (
            "task: pick object: {obj} receptacle: {to} copies: 000000001" + "9" * 5000,
            "copies must be a number from 1 to 5",
        ),
        ("task: pick object: {obj} receptacle: {to} hidden: maybe", "hidden must be yes or no"),
        ("task: cool object: {obj} receptacle: fridge", "it must go elsewhere|is not coolable"),
    ],
)
def test_bad_proposals_say_why(reply: str, says: str, family: AlfworldFamily) -> None:
    parent = kitchen("cool")
    goal = game_of(parent).goal
    with pytest.raises(InvalidProposal, match=says):
        family.parse(
            parent, reply.replace("{obj}", goal.target.lower()).replace("{to}", goal.destination.lower())
        )


def test_the_parent_itself_is_refused(family: AlfworldFamily, tasks: list[Task]) -> None:
    for task in tasks:
        with pytest.raises(InvalidProposal, match="the task that there is already"):
            family.parse(task, wish_of(game_of(task)).line)
        said = Task("alfworld", "do it.", {**task.payload, "annotated": True})  # by a person
        with pytest.raises(InvalidProposal, match="the task that there is already"):
            family.parse(said, wish_of(game_of(said)).line)


def test_a_reply_may_keep_a_number_that_the_room_has(family: AlfworldFamily) -> None:
    """Downloaded kitchens have twenty cabinets. The description says so, and a reply may say it again."""
    large = AlfworldFamily(task_types=["pick"], ood_receptacles=(20, 40))
    targets = [(task, game_of(task).goal.target.lower()) for task in large.make("out_of_domain", 8, 0)]
    wishes = [
        (task, f"task: pick object: {o} receptacle: {r}")
        for task, o in targets
        for r in ("cabinet", "drawer")
    ]
    children = [child for task, line in wishes if (child := parsed(family, task, line))]
    crowded = next(child for child in children if child.payload["knobs"]["destinations"] > 5)
    count, last = crowded.payload["knobs"]["destinations"], family.describe(crowded).splitlines()[-1]
    assert last.endswith(f" destinations: {count}")
    again = parsed(
        family, crowded, last.replace("hidden: yes", "hidden: no").replace("copies: 1", "copies: 3")
    )
    assert again is not None
    assert again.payload["knobs"]["destinations"] == count
    with pytest.raises(InvalidProposal, match="destinations must be a number from 1 to 5"):
        family.parse(crowded, f"{last.rpartition(' ')[0]} {count + 1}")


def test_a_treatment_that_the_object_does_not_allow(family: AlfworldFamily) -> None:
    parent = kitchen("pick", distractors=[14, 16])
    things = {class_of(o) for o in game_of(parent).placements}
    cold = next(
        c.lower()
        for c in sorted(things)
        if c in ("Spoon", "Fork", "Kettle", "SaltShaker", "PepperShaker", "Knife")
    )
    with pytest.raises(InvalidProposal, match=f"a {cold} is not heatable"):
        family.parse(parent, f"task: heat object: {cold} receptacle: countertop")


def test_a_parent_that_is_no_game_is_refused(family: AlfworldFamily) -> None:
    with pytest.raises(InvalidProposal, match="the parent is no game"):
        family.parse(Task("alfworld", "x", {}), "task: pick object: mug receptacle: shelf")


def test_instruction_changes_with_the_goal(family: AlfworldFamily) -> None:
    parent = kitchen("heat")
    target = game_of(parent).goal.target.lower()
    goal = game_of(parent).goal.destination.lower()
    child = family.parse(parent, f"task: pick object: {target} receptacle: {goal}")
    assert child.instruction in (f"put a {target} in {goal}", f"put some {target} on {goal}")
    assert child.payload["task_type"] == TASK_TYPES["pick"]
    assert child.metadata["parent"] == parent.task_id


def test_descriptions_are_short_and_end_with_the_form_of_an_answer(
    family: AlfworldFamily, tasks: list[Task]
) -> None:
    for task in tasks:
        text = family.describe(task)
        assert len(text.split()) <= 100
        assert read_wish(text).line == wish_of(game_of(task)).line == text.splitlines()[-1]
        for name in game_of(task).placements:
            assert class_of(name).lower() in text


@pytest.mark.long
def test_rewrites_move_the_difficulty(family: AlfworldFamily, tasks: list[Task]) -> None:
    """In the closed form nearly always, and in the expert's steps on average, by more than one command."""
    before = mean(map(expert_steps, tasks))
    for way, sign in ((Direction.HARDER, 1), (Direction.EASIER, -1)):
        children = [family.parse(t, family.rewrite(t, way, s)) for s, t in enumerate(tasks)]
        gains = [
            sign * (expected_steps(game_of(c)) - expected_steps(game_of(t)))
            for t, c in zip(tasks, children, strict=True)
        ]
        assert mean(g > 0 for g in gains) >= 0.9
        assert sign * (mean(map(expert_steps, children)) - before) > 1.0


def expert_steps(task: Task) -> float:
    world = compile_world(game_of(task))
    return mean(len(demonstrate(world, "", seed, 0.0)) for seed in range(4))


def test_the_closed_form_is_the_experts_mean(tasks: list[Task]) -> None:
    expected = [expected_steps(game_of(t)) for t in tasks]
    steps = [expert_steps(t) for t in tasks]
    assert abs(mean(expected) - mean(steps)) < 0.7
    far = [abs(e - s) for e, s in zip(expected, steps, strict=True)]
    assert mean(far) < 1.6


@pytest.mark.long
def test_knobs_move_the_experts_steps() -> None:
    recipes = dict(ROWS)

    def steps(name: str) -> float:
        return measured(recipes[name], 50)[0]

    base, hidden = steps("base"), steps("hidden: yes")
    assert steps("receptacles: 5") < base < steps("receptacles: 12") < steps("receptacles: 18")
    assert steps("copies: 4") < base < hidden
    assert steps("hidden: no") < hidden
    assert base < steps("task: heat") < steps("task: two")


def test_wishes_survive_their_line() -> None:
    rng = random.Random(0)
    for _ in range(50):
        task = rng.choice(sorted(TASK_TYPES))
        line = f"task: {task} object: mug receptacle: shelf copies: 2 hidden: yes destinations: 3"
        assert read_wish(line).line == line


@settings(max_examples=30, deadline=None)
@given(data=st.data(), seed=st.integers(0, 10**6), way=st.sampled_from(list(Direction)))
def test_rooms_as_downloaded_games_have_them(
    data: st.DataObject, seed: int, way: Direction, family: AlfworldFamily, tasks: list[Task]
) -> None:
    """Shared places, a start in front of furniture, odd facts: labels lead to the goal, and rewrites stay valid.

    Where furniture shares a place, the expert may leave a drawer closed that it stands before. Its way back is a step
    that was done before: going there twice must not be rewarded twice.
    """
    game, rng = game_of(tasks[data.draw(st.integers(0, len(tasks) - 1))]), random.Random(seed)
    places = sorted(game.receptacles.values())[:4]
    things, furniture = sorted(game.placements), sorted(game.receptacles)
    spare = [o for o in things if class_of(o) != game.goal.target]
    odd = replace(
        game,
        receptacles={r: rng.choice(places) for r in furniture},
        start=places[0],
        added=(f"isCool {things[0]}", *(f"inReceptacle {o} {rng.choice(furniture)}" for o in spare[:1])),
        removed=tuple(f"pickupable {o}" for o in spare[1:2]),
    )
    task = task_of(odd)
    if family.validate(task):
        return
    actions = [action for _, action in family.demonstrate(task, seed, 0.0)]
    reasons = family.explain(task, actions)
    bad = {r for r, good in zip(reasons, family.label_steps(task, actions), strict=True) if not good}
    assert bad <= {"done before"}
    assert reasons[-1] == "goal reached"
    child = family.parse(task, family.rewrite(task, way, seed))
    assert family.validate(child) == ""
