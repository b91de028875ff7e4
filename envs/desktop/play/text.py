"""A desktop as text: what was done, and what is shown. Texts of applications are quoted and stay on their line."""

from __future__ import annotations

import json

from envs.computer.actions import Action
from envs.desktop.play.screen import Item, View


def lines(view: View) -> list[str]:
    """One line for each item: `[3] push-button "Save"`."""
    left_out = [f"({view.more} more not shown)"] if view.more else []
    return [*map(_line, view.items), *left_out]


def said(action: Action, item: Item | None) -> str:
    """What was done, in words; the reward model and the critic read it."""
    where = f"{item.role} {_quoted(item.name)} {item.number}" if item else _point(action)
    match action.kind:
        case "type":
            return f"You typed {_quoted(action.text)}{f' into {where}' if where else ''}."
        case "press" | "chord" | "hold" | "let_go":
            verb = {"hold": "held down", "let_go": "let go of"}.get(action.kind, "pressed")
            joint = "+" if action.kind == "chord" else ", "
            return f"You {verb} {_quoted(joint.join(action.keys))}."
        case "scroll":
            to = "down" if action.dy > 0 else "up" if action.dy < 0 else "sideways"
            return f"You scrolled {to}{f' at {where}' if where else ''}."
        case "wait":
            return "You waited."
        case kind:
            return f"You {_clicked(kind, action)}{f' {where}' if where else ''}."


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


def _line(item: Item) -> str:
    value = f" value {_quoted(item.value)}" if item.value and item.value != item.name else ""
    return f"[{item.number}] {item.role} {_quoted(item.name)}{value}{f' {item.state}' if item.state else ''}"


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)
