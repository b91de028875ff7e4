"""A game as data: a goal in a furnished room. Everything else (facts, PDDL, text, files) is derived from it.

`Game` and a task's payload are the same thing, typed and as JSON:

    scene        number of the floor plan
    task_type    ALFRED's name of the task type
    pddl_params  ALFRED's goal parameters (object_target, parent_target, toggle_target, ..)
    receptacles  {receptacle id: location id}
    placements   {object id: receptacle id}
    knobs        measures of difficulty (`Game.knobs`)
    start        location of the agent, if not the usual one
    added        PDDL facts that `scene_facts` does not derive; only for downloaded games
    removed      PDDL facts that `scene_facts` derives and the game lacks; only for downloaded games
    annotated    true when the instruction is a person's, not one of the goal's sentences; only for downloaded games
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from envs.alfworld.games.alfred import TASK_TYPES, TOOLS, alfred
from envs.alfworld.games.ids import LOCATION_ID, OBJECT_ID, class_of
from rlanything.core.errors import UserError

START = "loc|0|0|0|0"
_SHORT = {full: short for short, full in TASK_TYPES.items()}
_REQUIRED = {"scene", "task_type", "pddl_params", "receptacles", "placements", "knobs"}
_OPTIONAL = {"start", "added", "removed", "annotated"}
_KINDS: dict[str, type] = {
    "scene": int,
    "task_type": str,
    "pddl_params": Mapping,
    "receptacles": Mapping,
    "placements": Mapping,
    "knobs": Mapping,
    "start": str,
    "added": Sequence,
    "removed": Sequence,
    "annotated": bool,
}
_ONE = "pickupable isReceptacleObject openable opened cleanable isClean heatable isHot coolable isCool toggleable"
_TWO = "receptacleType objectType canContain atLocation inReceptacle inReceptacleObject objectAtLocation"
PREDICATES = {
    **dict.fromkeys((*_ONE.split(" "), "isToggled", "sliceable", "isSliced"), 1),
    **dict.fromkeys((*_TWO.split(" "), "receptacleAtLocation"), 2),
}
"""The predicates that affect text and commands -> number of arguments."""
_ARGUMENT = re.compile(rf"agent1|[A-Za-z]+Type|{OBJECT_ID.pattern}|{LOCATION_ID.pattern}")


class GameError(UserError):
    """A payload or a file that is not a game; the message says why."""


@dataclass(frozen=True)
class Goal:
    """What is to be done, in ALFRED's classes. `destination` is '' for `look`; `lamp` is '' for the others."""

    task: str
    target: str
    destination: str = ""
    lamp: str = ""

    @property
    def tool(self) -> str:
        """Class of the receptacle that cleans, heats or cools; '' when nothing is to be done to the target."""
        return TOOLS.get(self.task, "")

    @property
    def copies(self) -> int:
        """How many targets must end up in one receptacle (0 for `look`)."""
        return {"look": 0, "two": 2}.get(self.task, 1)

    @property
    def params(self) -> dict[str, Any]:
        """ALFRED's pddl_params."""
        return {
            "object_target": self.target,
            "parent_target": self.destination,
            "toggle_target": self.lamp,
            "mrecep_target": "",
            "object_sliced": False,
        }

    @property
    def sentences(self) -> tuple[str, ...]:
        """The sentences that say exactly this goal."""
        words = {"obj": self.target.lower(), "recep": self.destination.lower(), "toggle": self.lamp.lower()}
        return tuple(t.format(mrecep="", **words) for t in alfred().goals[self.task].templates)

    @classmethod
    def from_params(cls, task_type: str, params: Mapping[str, Any]) -> Goal:
        """Inverse of `params`. Raises `GameError` for task types and parameters that ALFWorld does not have."""
        if task_type not in _SHORT:
            raise GameError(f"task type {task_type!r} is not one of {', '.join(_SHORT)}")
        if not isinstance(params, Mapping):
            raise GameError(f"pddl_params is no mapping but {type(params).__name__}")
        if params.get("object_sliced"):
            raise GameError("sliced targets are not supported")
        names = [str(params.get(k) or "") for k in ("object_target", "parent_target", "toggle_target")]
        known = {*alfred().object_classes, *alfred().receptacle_classes, ""}
        for name in names:
            if name not in known:
                raise GameError(f"{name!r} is not a class of ALFRED")
        return cls(_SHORT[task_type], *names)


@dataclass(frozen=True)
class Game:
    """A goal in a room. Ids and classes are ALFRED's; see the module for the fields."""

    scene: int
    goal: Goal
    receptacles: Mapping[str, str]
    placements: Mapping[str, str]
    start: str = START
    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    annotated: bool = False

    def receptacles_of(self, name: str) -> list[str]:
        """Ids of the receptacles of a class, sorted."""
        return sorted(r for r in self.receptacles if class_of(r) == name)

    def objects_of(self, name: str) -> list[str]:
        """Ids of the placed objects of a class, sorted."""
        return sorted(o for o in self.placements if class_of(o) == name)

    @property
    def knobs(self) -> dict[str, Any]:
        """Measures of difficulty: counts, and whether every copy of the target lies in a closed receptacle."""
        targets = self.objects_of(self.goal.target)
        return {
            "receptacles": len(self.receptacles),
            "distractors": len(self.placements) - len(targets) - len(self.objects_of(self.goal.lamp)),
            "copies": len(targets),
            "hidden": bool(targets) and all(self.is_closed(self.placements[o]) for o in targets),
            "destinations": len(self.receptacles_of(self.goal.destination)),
        }

    def is_closed(self, receptacle: str) -> bool:
        """Whether the receptacle is shut when the game starts."""
        shut = class_of(receptacle) in alfred().openable or f"openable {receptacle}" in self.added
        return (
            shut and f"openable {receptacle}" not in self.removed and f"opened {receptacle}" not in self.added
        )

    @property
    def payload(self) -> dict[str, Any]:
        """The game as a task's payload (JSON)."""
        data: dict[str, Any] = {
            "scene": self.scene,
            "task_type": TASK_TYPES[self.goal.task],
            "pddl_params": self.goal.params,
            "receptacles": dict(self.receptacles),
            "placements": dict(self.placements),
            "knobs": self.knobs,
        }
        if self.start != START:
            data["start"] = self.start
        if self.added:
            data["added"] = list(self.added)
        if self.removed:
            data["removed"] = list(self.removed)
        if self.annotated:
            data["annotated"] = True
        return data

    @classmethod
    def from_payload(cls, payload: Mapping[str, Any]) -> Game:
        """Inverse of `payload`. Raises `GameError`."""
        if not isinstance(payload, Mapping):
            raise GameError(f"the payload is no mapping but {type(payload).__name__}")
        keys = set(payload)
        if missing := sorted(_REQUIRED - keys):
            raise GameError(f"the payload lacks {', '.join(missing)}")
        if unknown := sorted(keys - _REQUIRED - _OPTIONAL):
            raise GameError(f"the payload has unknown keys: {', '.join(unknown)}")
        for key, kind in _KINDS.items():
            if key in payload and not isinstance(payload[key], kind):
                raise GameError(f"{key} is no {kind.__name__.lower()} but {type(payload[key]).__name__}")
        for key in ("receptacles", "placements"):
            if not all(isinstance(word, str) for pair in payload[key].items() for word in pair):
                raise GameError(f"{key} holds something that is no text")
        game = cls(
            payload["scene"],
            Goal.from_params(payload["task_type"], payload["pddl_params"]),
            dict(sorted(payload["receptacles"].items())),
            dict(sorted(payload["placements"].items())),
            payload.get("start", START),
            tuple(map(str, payload.get("added", ()))),
            tuple(map(str, payload.get("removed", ()))),
            payload.get("annotated", False),
        )
        game.check_ids()
        return game

    def check_ids(self) -> None:
        """Raises `GameError` when an id or a fact is malformed, or an object lies where the room has nothing."""
        for name in (*self.receptacles, *self.placements):
            if not OBJECT_ID.fullmatch(name):
                raise GameError(f"{name!r} is not an object id")
        for place in (*self.receptacles.values(), self.start):
            if not LOCATION_ID.fullmatch(place):
                raise GameError(f"{place!r} is not a location id")
        for name, receptacle in self.placements.items():
            if receptacle not in self.receptacles:
                raise GameError(f"{name} lies in {receptacle}, which the room lacks")
        for fact in (*self.added, *self.removed):
            predicate, *arguments = fact.split(" ")
            wellformed = PREDICATES.get(predicate) == len(arguments) and all(
                map(_ARGUMENT.fullmatch, arguments)
            )
            if not wellformed:
                raise GameError(f"({fact}) is not a fact of ALFRED")
