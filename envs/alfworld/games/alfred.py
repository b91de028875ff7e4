"""ALFRED's tables of floor plans, affordances and goals, read from facts/rooms.json (see facts/NOTICE)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

FOLDER = Path(__file__).parents[1] / "facts"

TASK_TYPES = {
    "pick": "pick_and_place_simple",
    "look": "look_at_obj_in_light",
    "clean": "pick_clean_then_place_in_recep",
    "heat": "pick_heat_then_place_in_recep",
    "cool": "pick_cool_then_place_in_recep",
    "two": "pick_two_obj_and_place",
}
"""Our short names of the six task types -> ALFRED's names."""

TOOLS = {"clean": "SinkBasin", "heat": "Microwave", "cool": "Fridge"}
"""The receptacle class that cleans, heats or cools."""

LAMP_CLASSES = ("DeskLamp", "FloorLamp")
KNIFE_CLASSES = ("ButterKnife", "Knife")


@dataclass(frozen=True)
class Room:
    """One floor plan: its furniture (id -> location, no two alike) and the object classes found in it."""

    number: int
    kind: str
    split: str
    receptacles: Mapping[str, str]
    objects: tuple[str, ...]


@dataclass(frozen=True)
class GoalText:
    """Of one task type: its kinds of room, its two sentences and its PDDL goal, with ALFRED's placeholders."""

    rooms: frozenset[str]
    templates: tuple[str, ...]
    pddl: str


@dataclass(frozen=True)
class AlfredTables:
    """Rooms, objects and goals. Classes are ALFRED's (`CounterTop`)."""

    rooms: Mapping[int, Room]
    holds: Mapping[str, frozenset[str]]
    affords: Mapping[str, frozenset[str]]
    openable: frozenset[str]
    movable: frozenset[str]
    receptacle_classes: tuple[str, ...]
    object_classes: tuple[str, ...]
    goals: Mapping[str, GoalText]

    def can_hold(self, receptacle_class: str, object_class: str) -> bool:
        """Whether an object of that class may be put into such a receptacle."""
        return object_class in self.holds.get(receptacle_class, frozenset())


@cache
def alfred() -> AlfredTables:
    """The tables; read from disk at the first use."""
    data = json.loads((FOLDER / "rooms.json").read_text(encoding="utf-8"))
    return AlfredTables(
        rooms={
            int(n): Room(int(n), r["kind"], r["split"], r["receptacles"], tuple(r["objects"]))
            for n, r in data["rooms"].items()
        },
        holds={k: frozenset(v) for k, v in data["holds"].items()},
        affords={k: frozenset(v) for k, v in data["affords"].items()},
        openable=frozenset(data["openable"]),
        movable=frozenset(data["movable"]),
        receptacle_classes=tuple(data["receptacle_classes"]),
        object_classes=tuple(data["object_classes"]),
        goals={
            short: GoalText(
                frozenset(data["goals"][full]["rooms"]),
                tuple(data["goals"][full]["templates"]),
                data["goals"][full]["pddl"],
            )
            for short, full in TASK_TYPES.items()
        },
    )


@cache
def domain_text() -> str:
    """The PDDL domain of ALFWorld 0.4.2."""
    return (FOLDER / "alfred.pddl").read_text(encoding="utf-8")


@cache
def grammar_text() -> str:
    """The text grammar of ALFWorld 0.4.2; its task sentence is the placeholder `UNKNOWN GOAL`."""
    return (FOLDER / "alfred.twl2").read_text(encoding="utf-8")
