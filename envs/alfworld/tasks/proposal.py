"""The texts of the adapter: the description of a game, and the one line that proposes a new one.

    task: heat object: apple receptacle: countertop copies: 1 hidden: yes destinations: 1

For `look` the receptacle is the lamp and there are no destinations. Numbers that are not given stay as they are. Where
`hidden` is not given, copies that are added or moved may go anywhere.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from envs.alfworld.games.alfred import LAMP_CLASSES, TASK_TYPES, TOOLS, alfred
from envs.alfworld.games.game import Game, Goal
from envs.alfworld.games.ids import class_of
from rlanything.core.types import InvalidProposal

MOST = 5
"""Most copies of a target, and most destinations, that a reply may ask for. A room may have more already."""
_LONGEST = 20_000
"""Characters of a reply that are read, from its end."""
_KEYS = ("task", "object", "receptacle", "copies", "hidden", "destinations")
_PAIR = re.compile(rf"\b({'|'.join(_KEYS)})[^\w:]*+:\W*+([a-z0-9]+)")
_START = re.compile(r"\btask[^\w:]*+:")


@dataclass(frozen=True)
class Wish:
    """A proposed task, not yet checked against a room. None: not given."""

    task: str
    target: str
    receptacle: str
    copies: int | None = None
    hidden: bool | None = None
    destinations: int | None = None

    @property
    def line(self) -> str:
        """The reply that says this."""
        words = [f"task: {self.task} object: {self.target} receptacle: {self.receptacle}"]
        words += [f"copies: {self.copies}"] if self.copies is not None else []
        words += [f"hidden: {'yes' if self.hidden else 'no'}"] if self.hidden is not None else []
        words += [f"destinations: {self.destinations}"] if self.destinations is not None else []
        return " ".join(words)


def wish_of(game: Game) -> Wish:
    """The wish that describes the game itself."""
    goal, knobs = game.goal, game.knobs
    wish = Wish(
        goal.task,
        goal.target.lower(),
        (goal.destination or goal.lamp).lower(),
        knobs["copies"],
        knobs["hidden"],
    )
    return wish if goal.task == "look" else replace(wish, destinations=knobs["destinations"])


def describe_game(game: Game) -> str:
    """Objects, furniture, possible task types and the present task, in about 60 words."""
    objects = _counted(class_of(o) for o in game.placements)
    shut = {class_of(r).lower() for r in game.receptacles if game.is_closed(r)}
    furniture = _counted((class_of(r) for r in game.receptacles), closed=shut)
    return (
        f"objects: {objects}\nreceptacles: {furniture}\n"
        f"tasks: {' '.join(possible_tasks(game))}\n{wish_of(game).line}"
    )


def possible_tasks(game: Game) -> list[str]:
    """Task types that the room has the furniture for."""
    kinds = {class_of(r) for r in game.receptacles}
    lit = any(class_of(o) in LAMP_CLASSES for o in game.placements)
    return [t for t in TASK_TYPES if (lit if t == "look" else TOOLS.get(t) in (None, *kinds))]


def _counted(classes: Iterable[str], closed: Iterable[str] = ()) -> str:
    counts = Counter(name.lower() for name in classes)
    return ", ".join(f"{name} {n}{' closed' if name in closed else ''}" for name, n in sorted(counts.items()))


def read_wish(reply: str, present: Wish | None = None) -> Wish:
    """The last complete wish in untrusted text. Raises `InvalidProposal` when there is none.

    present: the task that there is, whose numbers are allowed however large they are. Case, markdown and punctuation
    are ignored; the keys may be on several lines.
    """
    text = re.sub(r"[*_`#|]+", " ", reply[-_LONGEST:].lower())
    last: InvalidProposal | None = None
    for part in _parts(text):
        pairs: dict[str, str] = {}
        for key, value in _PAIR.findall(part):
            pairs.setdefault(key, value)
        try:
            return _wish(pairs, present)
        except InvalidProposal as error:
            last = last or error
    raise last or InvalidProposal("the reply has no line of the form `task: .. object: .. receptacle: ..`")


def _parts(text: str) -> Iterator[str]:
    """The text from each `task:` to the next one, the last part first."""
    end = len(text)
    for start in reversed([m.start() for m in _START.finditer(text)]):
        yield text[start:end]
        end = start


def _wish(pairs: dict[str, str], present: Wish | None) -> Wish:
    missing = [key for key in _KEYS[:3] if key not in pairs]
    if missing:
        raise InvalidProposal(f"the reply does not say {' and '.join(missing)}")
    if pairs["task"] not in TASK_TYPES:
        raise InvalidProposal(f"task {pairs['task']!r} is not one of {', '.join(TASK_TYPES)}")
    copies = _number(pairs, "copies", None if present is None else present.copies)
    destinations = _number(pairs, "destinations", None if present is None else present.destinations)
    hidden = pairs.get("hidden")
    if hidden not in (None, "yes", "no"):
        raise InvalidProposal(f"hidden must be yes or no, not {hidden!r}")
    if pairs["task"] == "two" and copies == 1:
        raise InvalidProposal("task two needs at least 2 copies")
    flag = None if hidden is None else hidden == "yes"
    return Wish(pairs["task"], pairs["object"], pairs["receptacle"], copies, flag, destinations)


def _number(pairs: dict[str, str], key: str, present: int | None) -> int | None:
    if key not in pairs:
        return None
    digits = pairs[key].lstrip("0")
    if digits not in map(str, (*range(1, MOST + 1), present)):
        raise InvalidProposal(f"{key} must be a number from 1 to {MOST}, not {pairs[key][:20]!r}")
    return int(digits)


def goal_of(wish: Wish, game: Game) -> Goal:
    """The wish as a goal in the room of `game`. Raises `InvalidProposal`, saying what the room or the task forbids."""
    things = {class_of(o).lower(): class_of(o) for o in game.placements}
    furniture = {class_of(r).lower(): class_of(r) for r in game.receptacles}
    if wish.target not in things:
        raise InvalidProposal(f"there is no {wish.target} in the room")
    target = things[wish.target]
    if target in LAMP_CLASSES:
        raise InvalidProposal(f"a {wish.target} cannot be taken")
    if wish.task == "look":
        if things.get(wish.receptacle) not in LAMP_CLASSES:
            raise InvalidProposal(f"{wish.receptacle!r} is no lamp in the room")
        return Goal("look", target, lamp=things[wish.receptacle])
    if wish.receptacle not in furniture:
        raise InvalidProposal(f"there is no {wish.receptacle} in the room")
    goal = Goal(wish.task, target, furniture[wish.receptacle])
    _check_goal(goal, set(furniture.values()))
    return goal


def _check_goal(goal: Goal, furniture: set[str]) -> None:
    target, place = goal.target.lower(), goal.destination.lower()
    allowed = {"clean": "Cleanable", "heat": "Heatable", "cool": "Coolable"}.get(goal.task)
    if allowed and goal.target not in alfred().affords[allowed]:
        raise InvalidProposal(f"a {target} is not {allowed.lower()}")
    if goal.tool and goal.tool not in furniture:
        raise InvalidProposal(f"there is no {goal.tool.lower()} in the room to {goal.task} a {target}")
    if goal.tool == goal.destination:
        raise InvalidProposal(f"the {place} is where a {target} is made {goal.task}; it must go elsewhere")
    if not alfred().can_hold(goal.destination, goal.target):
        raise InvalidProposal(f"a {target} cannot be put into a {place}")
