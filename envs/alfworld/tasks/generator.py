"""Generates games in ALFWorld's floor plans: a goal, furniture, and other objects."""

from __future__ import annotations

import random
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

from envs.alfworld.games.alfred import LAMP_CLASSES, TOOLS, Room, alfred
from envs.alfworld.games.game import Game, Goal
from envs.alfworld.games.ids import class_of
from rlanything.core.errors import RLAnythingError

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
"""Probability of each tool of the floor plan that the goal does not need."""

FURNITURE_BIAS = 3
"""Weight of furniture classes that could hold the target; others have weight 1."""

_TREATMENTS = {"clean": "Cleanable", "heat": "Heatable", "cool": "Coolable"}


class InfeasibleError(RLAnythingError):
    """This draw cannot give what the recipe asks for; another may."""


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
    """One game, with fewer receptacles than asked for where the room has fewer. Raises `InfeasibleError`."""
    goal = _draw_goal(room, recipe.task, rng)
    lamp, lamp_sites = _draw_lamp(room, goal, rng)
    sites = target_sites(room.receptacles, goal, recipe.hidden)
    if not sites:
        raise InfeasibleError(f"no place for {goal.target}")
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
    return task not in _TREATMENTS or object_class in alfred().affords[_TREATMENTS[task]]


def is_openable(receptacle: str) -> bool:
    """Whether a receptacle of a generated game can be opened; then it is closed at the start."""
    return class_of(receptacle) in alfred().openable


def target_sites(
    receptacles: Collection[str],
    goal: Goal,
    hidden: bool | None,
    is_closed: Callable[[str], bool] = is_openable,
) -> list[str]:
    """Receptacles where copies of the target may lie at the start, which excludes destinations."""
    found = [r for r in sorted(receptacles) if class_of(r) != goal.destination]
    found = [r for r in found if alfred().can_hold(class_of(r), goal.target)]
    return found if hidden is None else [r for r in found if is_closed(r) == hidden]


def place_object(name: str, sites: Sequence[str], placements: dict[str, str], rng: random.Random) -> str:
    """Put a new object of class `name` into one of the sites; returns its id."""
    while True:
        x, y, z = rng.uniform(-4, 4), rng.uniform(0, 2), rng.uniform(-4, 4)
        object_id = f"{name}|{x:+06.2f}|{y:+06.2f}|{z:+06.2f}"
        if object_id not in placements:
            placements[object_id] = rng.choice(sites)
            return object_id


def destinations_for(receptacles: Collection[str], task: str, target: str) -> list[str]:
    """Receptacle classes of the room into which the target can be put, other than the tool's."""
    kinds = {class_of(r) for r in receptacles}
    return sorted(k for k in kinds if alfred().can_hold(k, target) and k != TOOLS.get(task))


def _draw_goal(room: Room, task: str, rng: random.Random) -> Goal:
    """A goal that the room's furniture and objects allow."""
    kinds = {class_of(r) for r in room.receptacles}
    if task in TOOLS and TOOLS[task] not in kinds:
        raise InfeasibleError(f"no {TOOLS[task]}")
    targets = [o for o in room.objects if treatable(task, o) and any(alfred().can_hold(k, o) for k in kinds)]
    if not targets:
        raise InfeasibleError(f"nothing to {task}")
    target = rng.choice(targets)
    if task == "look":
        lamps = [lamp for lamp in LAMP_CLASSES if lamp in room.objects]
        if not lamps:
            raise InfeasibleError("no lamp")
        return Goal(task, target, lamp=rng.choice(lamps))
    destinations = destinations_for(room.receptacles, task, target)
    if not destinations:
        raise InfeasibleError(f"no destination for {target}")
    return Goal(task, target, rng.choice(destinations))


def _draw_lamp(room: Room, goal: Goal, rng: random.Random) -> tuple[str, list[str]]:
    """The lamp and its place. Every room with lamps gets one, so that it can become a `look` task."""
    lamps = [lamp for lamp in LAMP_CLASSES if lamp in room.objects]
    sites = [
        r
        for r in sorted(room.receptacles)
        if class_of(r) in LAMP_SUPPORTS and class_of(r) != goal.destination
    ]
    if goal.lamp and not sites:
        raise InfeasibleError("no place for the lamp")
    if not lamps or not sites:
        return "", []
    return goal.lamp or rng.choice(lamps), [rng.choice(sites)]


def _fixed_furniture(room: Room, goal: Goal, recipe: Recipe, rng: random.Random) -> list[str]:
    """The destinations, the tool, and often other tools, so that it can become another task."""
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
    """`required` and more furniture. The class is drawn first, because kitchens have mostly cabinets."""
    rest: dict[str, list[str]] = {}
    for r in sorted(set(room.receptacles) - required):
        if class_of(r) not in (goal.destination, *TOOLS.values()):
            rest.setdefault(class_of(r), []).append(r)
    kept = set(required)
    while rest and len(kept) < count:
        names = sorted(rest)
        chances = [FURNITURE_BIAS if alfred().can_hold(n, goal.target) else 1 for n in names]
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
    """Add `count` other objects, at most two of a class."""
    sites = {o: [r for r in receptacles if alfred().can_hold(class_of(r), o)] for o in room.objects}
    pool = [o for o in room.objects if o != goal.target and sites[o] for _ in range(2)]
    for name in rng.sample(pool, min(count, len(pool))):
        place_object(name, sites[name], placements, rng)
