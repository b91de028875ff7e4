"""The goals that descriptions of kinds are made of. A goal knows which commands bring it nearer in a scene.

`wants` gives every command that is part of a shortest way to the goal, and nothing where the goal is reached. Templates
(`{name}`) stand for words of the instruction.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from envs.web.browser.view import Item
from envs.web.kinds.scene import Scene, click, typing

Wants = Callable[[Scene], Iterable[str]]
CHOICE, TEXT, LOOK = "right choice", "right text", "looks further"
"""Why a command is good: it chooses what is asked for, types it, or looks where it may be."""


@dataclass(frozen=True, slots=True)
class Goal:
    """Something to reach. wants: the commands that bring it nearer; reason: why they are good."""

    wants: Wants
    reason: str = CHOICE


def press(name: str = "", *roles: str) -> Goal:
    """Click the element of this name (any, where it is ''), once."""

    def wants(scene: Scene) -> list[str]:
        found = scene.named(name, *roles) if name else scene.having(*roles)
        return [] if any(scene.clicked(item) for item in found) else [click(item) for item in found]

    return Goal(wants)


def press_nth(place: str, *roles: str) -> Goal:
    """Click the n-th element with one of these roles; `place` is a word such as `2nd`."""

    def wants(scene: Scene) -> list[str]:
        found = scene.having(*roles)[ordinal(scene.say(place)) - 1 :][:1]
        return [click(item) for item in found if not scene.clicked(item)]

    return Goal(wants)


def tick(names: str, *roles: str) -> Goal:
    """Have exactly these elements checked or selected. names: a template of a list."""

    def wants(scene: Scene) -> list[str]:
        wanted = scene.say(names).split(", ")
        return [click(item) for item in scene.having(*roles) if (item.name in wanted) != is_on(item)]

    return Goal(wants)


def choose(name: str, *roles: str) -> Goal:
    """Have this one checked or selected, of those that exclude each other."""

    def wants(scene: Scene) -> list[str]:
        found = scene.named(name, *roles)
        return [] if any(is_on(item) for item in found) else [click(item) for item in found]

    return Goal(wants)


def choose_nth(place: str, *roles: str) -> Goal:
    """The same for the n-th of these."""

    def wants(scene: Scene) -> list[str]:
        found = scene.having(*roles)[ordinal(scene.say(place)) - 1 :][:1]
        return [click(item) for item in found if not is_on(item)]

    return Goal(wants)


def fill(text: str, field: str | int = 0) -> Goal:
    """Have this text in a field: of this name, of this place (`3rd`), or the one of this index."""

    def wants(scene: Scene) -> list[str]:
        return [
            typing(item, scene.say(text)) for item in _field(scene, field) if item.value != scene.say(text)
        ]

    return Goal(wants, TEXT)


def reveal(shown: Callable[[Scene], bool], *roles: str) -> Goal:
    """Until something is shown: open the place where it was seen before, else any place that was not open yet.

    Places are elements with one of these roles and a name; an open one has the state `open`.
    """

    def wants(scene: Scene) -> list[str]:
        if shown(scene):
            return []
        places = [item for item in scene.having(*roles) if item.name]
        before = [replace(scene, view=view) for view in scene.seen]
        for past in reversed(before):
            if shown(past):
                opened = _open(past)
                return [click(item) for item in places if item.number in opened]
        known = set[int]().union(_open(scene), *map(_open, before))
        return [click(item) for item in places if item.number not in known]

    return Goal(wants, LOOK)


def _open(scene: Scene) -> set[int]:
    return {item.number for item in scene.view.elements if item.state == "open"}


def both(*goals: Goal) -> Goal:
    """Goals in any order."""
    return Goal(lambda scene: [command for goal in goals for command in goal.wants(scene)], goals[0].reason)


def rule(wants: Wants, reason: str = CHOICE) -> Goal:
    """A goal that only one kind has."""
    return Goal(wants, reason)


def is_on(item: Item) -> bool:
    """Whether an element is checked or selected."""
    return item.state in ("checked", "selected")


def ordinal(place: str) -> int:
    """The number in `3rd`; 0 where there is none."""
    digits = "".join(letter for letter in place if letter.isdigit())
    return int(digits) if digits else 0


def _field(scene: Scene, field: str | int) -> list[Item]:
    fields = scene.fields()
    if isinstance(field, int):
        return fields[field : field + 1]
    name = scene.say(field)
    if name[:1].isdigit():
        return fields[ordinal(name) - 1 :][:1]
    return [item for item in fields if item.name.rstrip(":") == name]
