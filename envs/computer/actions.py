"""Typed actions. They are data: nothing in them is ever made into code, a path or a selector."""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass
from typing import Any

LONGEST_TEXT = 2000
"""Characters that one action may type. The prompts of the tool `computer_use` say so."""
MOST_FOREIGN = 500
"""Characters outside ASCII in what one action types: where they alternate, each may need a change of the keyboard."""
MOST_DIFFERENT = 100
"""Different characters outside ASCII in what one action types."""
LARGEST = 5000
"""Largest coordinate or scroll distance, pixels."""
MOST_KEYS = 8
"""Keys of one action."""
WAIT = 1_000
"""A wait that does not say how long it is, milliseconds."""
LONGEST_WAIT = 10_000
"""Longest wait, milliseconds."""


BUTTONS = ("left", "middle", "right")
"""The names of `Action.button`."""


@dataclass(frozen=True, slots=True)
class Action:
    """One action. kind: move, click, down, up, drag, scroll, type, press, chord, hold, let_go, wait, done or fail.

    number: the element that it is for, or 0; x, y: pixels, where a place is named instead; text: what is typed; keys:
    what is pressed in order (press), pressed together (chord), or stays down (hold, until let_go); button: 0 left, 1
    middle, 2 right; times: clicks; dx, dy: pixels; wait: milliseconds.
    """

    kind: str
    number: int = 0
    x: int | None = None
    y: int | None = None
    text: str = ""
    keys: tuple[str, ...] = ()
    button: int = 0
    times: int = 1
    dx: int = 0
    dy: int = 0
    wait: int = 0

    def to_json(self) -> dict[str, Any]:
        """The action as JSON, for whoever performs it."""
        return {
            "kind": self.kind, "number": self.number, "x": self.x, "y": self.y, "text": self.text,
            "keys": list(self.keys), "button": self.button, "times": self.times, "dx": self.dx, "dy": self.dy,
            "wait": self.wait,
        }  # fmt: skip


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a text holds no action, in one sentence for the agent. It quotes nothing of the text."""

    reason: str


def untypable(text: str) -> str:
    """Why a text cannot be typed, in one sentence for the agent, or ''. Line breaks and tabs are keys.

    A program that types gets the text as an argument, which cannot hold a NUL, and must be able to encode it: UTF-8,
    and with it every tokenizer, has no code for half of a surrogate pair. No keyboard types another control character.
    """
    if len(text) > LONGEST_TEXT:
        return f"at most {LONGEST_TEXT} characters can be typed at once."
    foreign = [sign for sign in text if not sign.isascii()]
    if len(foreign) > MOST_FOREIGN:
        return f"at most {MOST_FOREIGN} characters outside ASCII can be typed at once."
    if len(set(foreign)) > MOST_DIFFERENT:
        return f"at most {MOST_DIFFERENT} different characters outside ASCII can be typed at once."
    for sign in text:
        if "\ud800" <= sign <= "\udfff":
            return "a text must not hold half of a surrogate pair."
        if sign not in "\n\t" and unicodedata.category(sign) == "Cc":
            return f"no keyboard types the control character U+{ord(sign):04X}."
    return ""
