"""Actions as short texts: `click 12`, `type 5 hello`, `press enter`, `scroll 3 down`, `wait`, `done`, `fail`."""

from __future__ import annotations

import re

from envs.computer.actions import MOST_KEYS, WAIT, Action, Refusal, untypable
from envs.computer.keyboard import PAGE, Keyboard, together

FORMS = "click N, double N, right N, hover N, type N TEXT, press KEY, scroll N up|down, wait, done, fail"
_CLICKS = {"click": (0, 1), "double": (0, 2), "right": (2, 1)}
_POINT = re.compile(r"(click|double|right|hover) (\d{1,4})", re.ASCII | re.IGNORECASE)
_TYPE = re.compile(r"type (\d{1,4})(?: (.*))?", re.ASCII | re.DOTALL | re.IGNORECASE)
_SCROLL = re.compile(r"scroll (\d{1,4}) (up|down)", re.ASCII | re.IGNORECASE)
_VERBS = {
    ("click", 0, 1): "click", ("click", 0, 2): "double", ("click", 2, 1): "right", ("move", 0, 1): "hover"
}  # fmt: skip
"""(kind, button, times) of an action on an element -> its verb."""
DISTANCE = 100
"""Pixels that `scroll` moves."""


def parse(text: str, keyboard: Keyboard = PAGE) -> Action | Refusal:
    """The action that a text spells, or why it spells none. The text is untrusted and only ever matched.

    `press ctrl+s` presses the keys together. Verbs may have capital letters. A full stop at the end is left out where
    nothing is typed and it is no key.
    """
    text = text.strip()
    found = _exact(text, keyboard)
    if isinstance(found, Refusal) and text.endswith(".") and not text.lower().startswith("type"):
        again = _exact(text[:-1], keyboard)
        return again if isinstance(again, Action) else found
    return found


def _exact(text: str, keyboard: Keyboard) -> Action | Refusal:
    if text.lower() == "wait":
        return Action("wait", wait=WAIT)
    if text.lower() in ("done", "fail"):
        return Action(text.lower())
    if found := _POINT.fullmatch(text):
        verb, number = found[1].lower(), int(found[2])
        button, times = _CLICKS.get(verb, (0, 1))
        return Action("move" if verb == "hover" else "click", number, button=button, times=times)
    if found := _TYPE.fullmatch(text):
        typed = found[2] or ""  # nothing: the field becomes empty
        if reason := untypable(typed):
            return Refusal(reason)
        return Action("type", int(found[1]), text=typed)
    if text.lower().startswith("type "):
        # Without a number, a sentence such as `Type the name into field 3.` would be typed.
        return Refusal("type needs a number before the text, 0 for where the focus is: type N TEXT.")
    if found := _SCROLL.fullmatch(text):
        return Action("scroll", int(found[1]), dy=DISTANCE if found[2].lower() == "down" else -DISTANCE)
    return _press(text, keyboard)


def _press(text: str, keyboard: Keyboard) -> Action | Refusal:
    verb, _, names = text.partition(" ")
    keys = tuple(map(keyboard.key, together(names))) if verb.lower() == "press" and names else ()
    known = tuple(name for name in keys if name is not None)
    if keys and len(known) == len(keys) <= MOST_KEYS:
        return Action("chord" if len(known) > 1 else "press", keys=known)
    return Refusal(f"that is not an action. Actions are: {FORMS}.")


def spell(action: Action) -> str:
    """The short text of an action on an element: the inverse of `parse` for clicks, pointing and typing.

    '' for an action that has no such text, such as a click with the middle button: it must not pass for another one.
    """
    if action.x is not None or action.y is not None:
        return ""
    if action.kind == "type":
        return f"type {action.number} {action.text}"
    verb = _VERBS.get((action.kind, action.button, action.times))
    return f"{verb} {action.number}" if verb else ""
