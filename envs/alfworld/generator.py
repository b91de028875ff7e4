"""Makes games in ALFWorld's floor plans: a goal that can be reached, furniture, and things lying about."""

from __future__ import annotations

import random
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

from envs.alfworld.facts import LAMP_CLASSES, TOOLS, Room, facts
from envs.alfworld.game import Game, Goal
from envs.alfworld.ids import class_of

LAMP_SUPPORTS = (
    "Desk",
    "SideTable",
    "Dresser",
    "Shelf",
    "CoffeeTable",
    "DiningTable",
    "TVStand",
    "CounterTop",
)
"""Where lamps stand."""

OTHER_TOOLS = 0.6
"""Chance that a tool which the goal does not need stands in the room, if the floor plan has it."""

FURNITURE_BIAS = 3
"""How much likelier a class of furniture is kept when the target could lie in it."""

_TREATMENTS = {"clean": "Cleanable", "heat": "Heatable", "cool": "Coolable"}


class Infeasible(Exception):
    """This room cannot give what the recipe asks for; another draw may."""


@dataclass(frozen=True)
class Recipe:
    """The knobs of one game. `hidden`: True = targets only in closed receptacles, False = in sight, None = anywhere."""

    task: str
    receptacles: int
    distractors: int
    copies: int = 1
    hidden: bool | None = None
    destinations: int = 1


def generate(room: Room, recipe: Recipe, rng: random.Random) -> Game:
    """One game, with fewer receptacles than asked for where the room has fewer. Raises `Infeasible`."""
    goal = _draw_goal(room, recipe.task, rng)
    lamp, lamp_sites = _draw_lamp(room, goal, rng)
    sites = target_sites(room.receptacles, goal, recipe.hidden)
    if not sites:
        raise Infeasible(f"no place for {goal.target}")
    required = {*_fixed_furniture(room, goal, recipe, rng), *lamp_sites, rng.choice(sites)}
    kept = _furnish(room, goal, required, recipe.receptacles, rng)
    receptacles = {r: room.receptacles[r] for r in sorted(kept)}
    placements: dict[str, str] = {}
    for site in lamp_sites:
        place_object(lamp, [site], placements, rng)
    sites = target_sites(receptacles, goal, recipe.hidden)
    for _ in range(max(recipe.copies, goal.copies)):
        place_object(goal.target, sites, placements, rng)
    _scatter(room, goal, recipe.distractors, receptacles, placements, rng)
    return Game(room.number, goal, receptacles, placements)


def treatable(task: str, object_class: str) -> bool:
    """Whether an object of that class allows what the task does to its target."""
    return task not in _TREATMENTS or object_class in facts().affords[_TREATMENTS[task]]


def is_openable(receptacle: str) -> bool:
    """Whether a receptacle of a generated game can be opened; then it is shut at the start."""
    return class_of(receptacle) in facts().openable


def target_sites(
    receptacles: Collection[str],
    goal: Goal,
    hidden: bool | None,
    is_closed: Callable[[str], bool] = is_openable,
) -> list[str]:
    """Receptacles where copies of the target may lie at the start: never at the destination."""
    found = [r for r in sorted(receptacles) if class_of(r) != goal.destination]
    found = [r for r in found if facts().can_hold(class_of(r), goal.target)]
    return found if hidden is None else [r for r in found if is_closed(r) == hidden]


def place_object(name: str, sites: Sequence[str], placements: dict[str, str], rng: random.Random) -> str:
    """Puts a new object of class `name` into one of the sites; returns its id."""
    while True:
        x, y, z = rng.uniform(-4, 4), rng.uniform(0, 2), rng.uniform(-4, 4)
        object_id = f"{name}|{x:+06.2f}|{y:+06.2f}|{z:+06.2f}"
        if object_id not in placements:
            placements[object_id] = rng.choice(sites)
            return object_id


def destinations_for(receptacles: Collection[str], task: str, target: str) -> list[str]:
    """Receptacle classes of the room into which the target can be put, other than the tool's."""
    kinds = {class_of(r) for r in receptacles}
    return sorted(k for k in kinds if facts().can_hold(k, target) and k != TOOLS.get(task))


def _draw_goal(room: Room, task: str, rng: random.Random) -> Goal:
    """A goal that the room's furniture and objects allow."""
    kinds = {class_of(r) for r in room.receptacles}
    if task in TOOLS and TOOLS[task] not in kinds:
        raise Infeasible(f"no {TOOLS[task]}")
    targets = [o for o in room.objects if treatable(task, o) and any(facts().can_hold(k, o) for k in kinds)]
    if not targets:
        raise Infeasible(f"nothing to {task}")
    target = rng.choice(targets)
    if task == "look":
        lamps = [lamp for lamp in LAMP_CLASSES if lamp in room.objects]
        if not lamps:
            raise Infeasible("no lamp")
        return Goal(task, target, lamp=rng.choice(lamps))
    destinations = destinations_for(room.receptacles, task, target)
    if not destinations:
        raise Infeasible(f"no destination for {target}")
    return Goal(task, target, rng.choice(destinations))


def _draw_lamp(room: Room, goal: Goal, rng: random.Random) -> tuple[str, list[str]]:
    """The lamp and where it stands: in every room that has lamps, so that `look` can be asked for."""
    lamps = [lamp for lamp in LAMP_CLASSES if lamp in room.objects]
    sites = [
        r
        for r in sorted(room.receptacles)
        if class_of(r) in LAMP_SUPPORTS and class_of(r) != goal.destination
    ]
    if goal.lamp and not sites:
        raise Infeasible("no place for the lamp")
    if not lamps or not sites:
        return "", []
    return goal.lamp or rng.choice(lamps), [rng.choice(sites)]


def _fixed_furniture(room: Room, goal: Goal, recipe: Recipe, rng: random.Random) -> list[str]:
    """The destinations, the tool, and mostly the other tools, so that other treatments can be asked for."""
    wanted = {goal.destination: recipe.destinations}
    for tool in TOOLS.values():
        if tool == goal.tool or rng.random() < OTHER_TOOLS:
            wanted.setdefault(tool, 1)
    found: list[str] = []
    for name, count in wanted.items():
        there = [r for r in sorted(room.receptacles) if class_of(r) == name]
        found += rng.sample(there, min(count, len(there)))
    return found


def _furnish(room: Room, goal: Goal, required: set[str], count: int, rng: random.Random) -> set[str]:
    """`required` and more furniture, drawn class by class: taken as they are, kitchens are mostly cabinets."""
    rest: dict[str, list[str]] = {}
    for r in sorted(set(room.receptacles) - required):
        if class_of(r) not in (goal.destination, *TOOLS.values()):
            rest.setdefault(class_of(r), []).append(r)
    kept = set(required)
    while rest and len(kept) < count:
        names = sorted(rest)
        chances = [FURNITURE_BIAS if facts().can_hold(n, goal.target) else 1 for n in names]
        name = rng.choices(names, chances)[0]
        kept.add(rest[name].pop(rng.randrange(len(rest[name]))))
        if not rest[name]:
            del rest[name]
    return kept


def _scatter(
    room: Room,
    goal: Goal,
    count: int,
    receptacles: Collection[str],
    placements: dict[str, str],
    rng: random.Random,
) -> None:
    """Adds `count` other objects, at most two of a class, wherever their class may lie."""
    sites = {o: [r for r in receptacles if facts().can_hold(class_of(r), o)] for o in room.objects}
    pool = [o for o in room.objects if o != goal.target and sites[o] for _ in range(2)]
    for name in rng.sample(pool, min(count, len(pool))):
        place_object(name, sites[name], placements, rng)
