"""Actions as short texts: `click 12`, `type 5 hello`, `press enter`, `scroll 3 down`, `wait`, `done`, `fail`."""

from __future__ import annotations

import re

from envs.computer.actions import MOST_KEYS, Action, Refusal, untypable
from envs.computer.keyboard import PAGE, Keyboard

FORMS = "click N, double N, right N, hover N, type N TEXT, press KEY, scroll N up|down, wait, done, fail"
_CLICKS = {"click": (0, 1), "double": (0, 2), "right": (2, 1)}
_POINT = re.compile(r"(click|double|right|hover) (\d{1,4})", re.ASCII)
_TYPE = re.compile(r"type (\d{1,4})(?: (.*))?", re.ASCII | re.DOTALL)
_SCROLL = re.compile(r"scroll (\d{1,4}) (up|down)", re.ASCII)
DISTANCE = 100
"""Pixels that `scroll` moves."""


def parse(text: str, keyboard: Keyboard = PAGE) -> Action | Refusal:
    """The action that a text spells, or why it spells none. The text is untrusted and only ever matched.

    Where keys can be held down, `press ctrl+s` presses them together, otherwise one after the other.
    """
    text = text.strip()
    if text in ("wait", "done", "fail"):
        return Action(text)
    if found := _POINT.fullmatch(text):
        verb, number = found[1], int(found[2])
        button, times = _CLICKS.get(verb, (0, 1))
        return Action("move" if verb == "hover" else "click", number, button=button, times=times)
    if found := _TYPE.fullmatch(text):
        typed = found[2] or ""  # nothing: the field becomes empty
        if reason := untypable(typed):
            return Refusal(reason)
        return Action("type", int(found[1]), text=typed)
    if found := _SCROLL.fullmatch(text):
        return Action("scroll", int(found[1]), dy=DISTANCE if found[2] == "down" else -DISTANCE)
    return _press(text, keyboard)


def _press(text: str, keyboard: Keyboard) -> Action | Refusal:
    verb, _, names = text.partition(" ")
    keys = tuple(keyboard.key(name) for name in names.split("+")) if verb == "press" and names else ()
    known = tuple(name for name in keys if name is not None)
    if keys and len(known) == len(keys) <= MOST_KEYS:
        return Action("chord" if keyboard.holds and len(known) > 1 else "press", keys=known)
    return Refusal(f"that is not an action. Actions are: {FORMS}.")


def spell(action: Action) -> str:
    """The short text of an action on an element: the inverse of `parse` for clicks, pointing and typing."""
    if action.kind == "type":
        return f"type {action.number} {action.text}"
    if action.kind == "move":
        return f"hover {action.number}"
    verb = "right" if action.button == 2 else "double" if action.times == 2 else "click"
    return f"{verb} {action.number}"
