"""Generated games: as asked for, solvable, reproducible, and of the intended difficulty."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from statistics import mean

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from envs.alfworld.family import AlfworldFamily
from envs.alfworld.games.alfred import TASK_TYPES, alfred
from envs.alfworld.games.game import PREDICATES, START, Game
from envs.alfworld.games.ids import class_of, display_names, from_pddl, to_pddl
from envs.alfworld.play.validate import why_invalid, why_unplayable
from envs.alfworld.tasks.generator import InfeasibleError, Recipe, generate
from envs.alfworld.tasks.sampling import spread, task_of
from rlanything.core.types import Task

recipes = st.builds(
    Recipe,
    task=st.sampled_from(sorted(TASK_TYPES)),
    receptacles=st.integers(4, 20),
    distractors=st.integers(0, 15),
    copies=st.integers(1, 4),
    hidden=st.sampled_from([True, False, None]),
    destinations=st.integers(1, 4),
)


def test_the_facts_are_those_of_the_package() -> None:
    tables = alfred()
    assert len(tables.rooms) == 120
    assert Counter(r.split for r in tables.rooms.values()) == {"train": 96, "test": 24}
    assert Counter(r.kind for r in tables.rooms.values()) == {
        "Kitchen": 30,
        "LivingRoom": 30,
        "Bedroom": 30,
        "Bathroom": 30,
    }
    assert tables.can_hold("Fridge", "Apple")
    assert not tables.can_hold("Fridge", "Book")


def test_rooms_share_no_locations() -> None:
    for room in alfred().rooms.values():
        places = [*room.receptacles.values(), START]
        assert len(places) == len(set(places)), room.number


@settings(max_examples=150, deadline=None)
@given(recipe=recipes, room=st.sampled_from(sorted(alfred().rooms)), seed=st.integers(0, 10**6))
def test_every_generated_game_is_as_asked_for(recipe: Recipe, room: int, seed: int) -> None:
    try:
        game = generate(alfred().rooms[room], recipe, random.Random(seed))
    except InfeasibleError:
        return
    assert why_unplayable(game) == ""
    knobs = game.knobs
    assert knobs["copies"] == max(recipe.copies, game.goal.copies)
    assert recipe.hidden is None or knobs["hidden"] == recipe.hidden
    assert knobs["destinations"] <= recipe.destinations
    assert len(set(game.receptacles.values())) == len(game.receptacles)
    assert Game.from_payload(json.loads(json.dumps(game.payload))) == game


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_the_instruction_names_the_goal_and_nothing_else(data: st.DataObject, tasks: list[Task]) -> None:
    task = data.draw(st.sampled_from(tasks))
    game = Game.from_payload(task.payload)
    words = set(task.instruction.split())
    assert game.goal.target.lower() in words
    assert (game.goal.destination or game.goal.lamp).lower() in words
    assert task.instruction in game.goal.sentences
    others = {c.lower() for c in alfred().receptacle_classes} - {game.goal.destination.lower()}
    assert not words & others


@pytest.mark.parametrize("split", ["train", "in_domain", "out_of_domain", "reward_panel"])
def test_make_is_deterministic_and_distinct(split: str, family: AlfworldFamily) -> None:
    first, again, other = family.make(split, 24, 5), family.make(split, 24, 5), family.make(split, 24, 6)
    assert first == again
    assert len({t.task_id for t in first}) == 24
    assert not {t.task_id for t in first} & {t.task_id for t in other}
    assert [family.validate(t) for t in first] == [""] * 24


def test_make_does_not_depend_on_the_hash_seed() -> None:
    code = (
        "from envs.alfworld.family import AlfworldFamily; from rlanything.stages.tasks import panel_hash; "
        "print(panel_hash(AlfworldFamily().make('train', 12, 3)))"
    )
    hashes = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("0", "1")
    }
    assert len(hashes) == 1


def test_splits_share_no_task_and_rooms_are_apart(family: AlfworldFamily) -> None:
    made = {
        split: family.make(split, 40, 1) for split in ("train", "in_domain", "out_of_domain", "reward_panel")
    }
    ids = [t.task_id for tasks in made.values() for t in tasks]
    assert len(ids) == len(set(ids))
    for split, kind in (
        ("train", "train"),
        ("in_domain", "train"),
        ("out_of_domain", "test"),
        ("reward_panel", "test"),
    ):
        assert {alfred().rooms[t.payload["scene"]].split for t in made[split]} == {kind}
    assert all(6 <= t.payload["knobs"]["receptacles"] <= 10 for t in made["in_domain"])
    assert all(13 <= t.payload["knobs"]["receptacles"] <= 17 for t in made["out_of_domain"])


def test_the_mixture_is_kept(family: AlfworldFamily) -> None:
    tasks = family.make("train", 36, 0)
    assert set(Counter(t.payload["task_type"] for t in tasks).values()) == {6}
    assert Counter(t.metadata["level"] for t in tasks) == {"easy": 12, "medium": 12, "hard": 12}
    only = AlfworldFamily(task_types={"heat": 3, "pick": 1}, levels=["hard"]).make("train", 8, 0)
    assert Counter(t.payload["task_type"] for t in only)[TASK_TYPES["heat"]] == 6


def test_spread_is_exact() -> None:
    names = spread({"a": 1.0, "b": 2.0}, 7, random.Random(0))
    assert Counter(names)["b"] in (4, 5)
    assert len(names) == 7


def test_calibration(family: AlfworldFamily) -> None:
    """A noise-free searching expert: 7 to 9 commands in domain, about 12 out of domain, with a wide spread."""
    steps = {
        split: [len(family.demonstrate(t, 0, 0.0)) for t in family.make(split, 150, 0)]
        for split in ("in_domain", "out_of_domain")
    }
    assert 7.0 <= mean(steps["in_domain"]) <= 9.2
    assert 10.8 <= mean(steps["out_of_domain"]) <= 13.0
    assert min(steps["in_domain"]) <= 5
    assert max(steps["in_domain"]) >= 14


def test_episodes_stay_short(family: AlfworldFamily) -> None:
    """Fifteen steps of a clumsy player, in words: what a model of half a million parameters can read."""
    lengths = []
    for seed, task in enumerate(family.make("in_domain", 60, 0)):
        turns = family.demonstrate(task, seed, 0.5)[:15]
        lengths.append(sum(len(f"{obs.text} {action}".split()) for obs, action in turns))
    assert mean(lengths) < 400


def test_ids_survive_pddl() -> None:
    for name in ("Apple|+01.20|+00.93|-00.41", "Sink|-01.90|00.97|-01.50|SinkBasin"):
        assert from_pddl(to_pddl(name)) == name
    assert class_of("Sink|-01.90|+00.97|-01.50|SinkBasin") == "SinkBasin"


def test_names_count_backwards_as_in_the_original() -> None:
    names = display_names(
        ["Mug|+01.00|+00.00|+00.00", "Mug|-01.00|+00.00|+00.00", "Sink|1.0|1.0|1.0|SinkBasin"]
    )
    assert names == {
        "Mug|-01.00|+00.00|+00.00": "mug 2",
        "Mug|+01.00|+00.00|+00.00": "mug 1",
        "Sink|1.0|1.0|1.0|SinkBasin": "sinkbasin 1",
    }


def test_validate_says_what_is_wrong(family: AlfworldFamily) -> None:
    task = family.make("train", 1, 0)[0]
    game = Game.from_payload(task.payload)
    assert "does not say the goal" in family.validate(Task("alfworld", "bring me tea", task.payload))
    assert "lacks knobs" in family.validate(_with(task, knobs=None))
    assert "unknown keys: colour" in family.validate(_with(task, colour="red"))
    assert "knobs" in family.validate(_with(task, knobs={**task.payload["knobs"], "copies": 9}))
    assert "receptacles is no mapping" in family.validate(_with(task, receptacles=[]))
    assert "not an object id" in family.validate(_with(task, placements={"__import__('os')": "x"}))
    assert "which the room lacks" in family.validate(
        _with(task, placements={"Apple|+01|+02|+03": "Sofa|+01|+02|+03"})
    )
    assert "not a location" in family.validate(
        _with(task, receptacles=dict.fromkeys(game.receptacles, "here"))
    )
    assert "not a fact" in family.validate(_with(task, added=["opened (evil)"]))
    assert "task type" in family.validate(_with(task, task_type="make_tea"))
    assert "not a class" in family.validate(_with(task, pddl_params={"object_target": "{evil}"}))


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)
odd_facts = st.lists(
    st.builds(
        " ".join,
        st.lists(
            st.sampled_from(
                [*PREDICATES, "agent1", "AppleType", "Apple|+01.00|+01.00|+01.00", "loc|1|1|1|1", "x"]
            ),
            max_size=4,
        ),
    ),
    max_size=4,
)


@settings(max_examples=300, deadline=None)
@given(data=st.data())
def test_validate_never_raises(data: st.DataObject, family: AlfworldFamily, tasks: list[Task]) -> None:
    """Whatever a payload holds, the answer is a sentence."""
    task = tasks[data.draw(st.integers(0, len(tasks) - 1))]
    keys = [*task.payload, "start", "added", "removed", "annotated", "other"]
    changes = data.draw(st.dictionaries(st.sampled_from(keys), json_values | odd_facts, max_size=3))
    reason = family.validate(Task("alfworld", task.instruction, {**task.payload, **changes}))
    assert isinstance(reason, str)
    assert reason or set(changes) <= {"scene", "added", "removed", "annotated", "start"}


def test_validate_refuses_solved_and_unsolvable_games(tasks: list[Task]) -> None:
    task = next(t for t in tasks if t.payload["task_type"] == TASK_TYPES["pick"])
    game = Game.from_payload(task.payload)
    target, place = game.objects_of(game.goal.target), game.receptacles_of(game.goal.destination)[0]
    solved = {**game.placements, **dict.fromkeys(target, place)}
    assert (
        why_invalid(task_of(Game(game.scene, game.goal, game.receptacles, solved)))
        == "the goal holds from the start"
    )
    gone = {o: r for o, r in game.placements.items() if o not in target}
    assert (
        why_invalid(task_of(Game(game.scene, game.goal, game.receptacles, gone)))
        == "the goal cannot be reached"
    )
    bare = {r: p for r, p in game.receptacles.items() if class_of(r) != game.goal.destination}
    kept = {o: r for o, r in game.placements.items() if r in bare}
    assert "there is no" in why_invalid(task_of(Game(game.scene, game.goal, bare, kept)))


@pytest.mark.parametrize("kind", sorted(TASK_TYPES))
def test_validate_refuses_games_whose_target_cannot_be_moved(kind: str, tasks: list[Task]) -> None:
    """The real engine cannot load them. Only downloaded games can lack these facts."""
    task = next(t for t in tasks if t.payload["task_type"] == TASK_TYPES[kind])
    game = Game.from_payload(task.payload)
    goal = game.goal
    fixed = tuple(f"pickupable {o}" for o in game.objects_of(goal.target))
    full = (f"canContain {goal.destination}Type {goal.target}Type",) if goal.destination else ()
    for removed in (fixed, full) if full else (fixed,):
        assert why_invalid(task_of(replace(game, removed=removed))) == "the goal cannot be reached"
    if len(fixed) > max(1, goal.copies):
        assert why_invalid(task_of(replace(game, removed=fixed[:1]))) == ""


def _with(task: Task, **changes: object) -> Task:
    payload = {**task.payload, **changes}
    return Task(task.env, task.instruction, {k: v for k, v in payload.items() if v is not None})
