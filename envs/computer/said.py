"""What an action did, in words. Texts of applications and of agents are quoted and stay on their line."""

from __future__ import annotations

import json
from typing import Protocol

from envs.computer.actions import Action


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


def said(action: Action, item: Named | None) -> str:
    """What was done; the reward model and the critic read it. item: what it was done to, where a text shows that."""
    where = f"{item.role} {quoted(item.name)} {item.number}" if item else _point(action)
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
        case "wait":
            return "You waited."
        case kind:
            return f"You {_clicked(kind, action)}{f' {where}' if where else ''}."


def quoted(text: str) -> str:
    """A text in quotes, on one line."""
    return json.dumps(text, ensure_ascii=False)


def _clicked(kind: str, action: Action) -> str:
    if kind == "click":
        times = {1: "", 2: "double-", 3: "triple-"}[action.times]
        return f"{('', 'middle-', 'right-')[action.button]}{times}clicked"
    verbs = {
        "move": "pointed at",
        "drag": "dragged to",
        "down": "pressed the mouse",
        "up": "let the mouse go",
    }
    return verbs[kind]


def _point(action: Action) -> str:
    return "" if action.x is None else f"({action.x}, {action.y})"
