"""What an action did, in words. Texts of applications and of agents are quoted and stay on their line."""

from __future__ import annotations

import json
import re
from typing import Protocol

from envs.computer.actions import Action

_BREAKS = re.compile("[\x85\u2028\u2029]")
"""Line breaks that JSON leaves as they are."""


class Named(Protocol):
    """Something on a screen."""

    @property
    def number(self) -> int:
        """By which actions name it."""

    @property
    def role(self) -> str:
        """What it is."""

    @property
    def name(self) -> str:
        """What it is called."""


def said(action: Action, item: Named | None, nowhere: str = "") -> str:
    """What was done; the reward model and the critic read it.

    item: what it was done to, where a text shows that. nowhere: what stands for an item where there is none, in place
    of the pixels that the action names.
    """
    where = f"{item.role} {quoted(item.name)} {item.number}" if item else nowhere or _point(action)
    match action.kind:
        case "type":
            return f"You typed {quoted(action.text)}{f' into {where}' if where else ''}."
        case "press" | "chord" | "hold" | "let_go":
            verb = {"hold": "held down", "let_go": "let go of"}.get(action.kind, "pressed")
            joint = "+" if action.kind == "chord" else ", "
            return f"You {verb} {quoted(joint.join(action.keys))}."
        case "scroll":
            across = "sideways" if action.dx else "by 0"
            to = "down" if action.dy > 0 else "up" if action.dy < 0 else across
            return f"You scrolled {to}{f' at {where}' if where else ''}."
        case "down" | "up":
            verb = "pressed the mouse" if action.kind == "down" else "let the mouse go"
            return f"You {verb}{f' on {where}' if where else ''}."
        case "wait":
            return "You waited."
        case kind:
            return f"You {_clicked(kind, action)}{f' {where}' if where else ''}."


def quoted(text: str) -> str:
    """A text in quotes, on one line."""
    return _BREAKS.sub(lambda found: f"\\u{ord(found[0]):04x}", json.dumps(text, ensure_ascii=False))


def _clicked(kind: str, action: Action) -> str:
    if kind == "click":
        times = {1: "", 2: "double-", 3: "triple-"}[action.times]
        return f"{('', 'middle-', 'right-')[action.button]}{times}clicked"
    return {"move": "hovered over", "drag": "dragged to"}[kind]


def _point(action: Action) -> str:
    return "" if action.x is None else f"({action.x}, {action.y})"
