"""Typed actions as `computer_13` writes them: what a world is asked to do. `tool_calls` reads these calls back.

Every value of a call is a number or a text of its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from envs.computer.actions import BUTTONS, Action
from envs.computer.tool_calls import NOTCH

Call = dict[str, Any]


def calls(action: Action) -> list[Call]:
    """The calls of one action, in order. Its element must have been made into a place already."""
    return list(_calls(action))


def _calls(action: Action) -> Iterator[Call]:
    place = {} if action.x is None or action.y is None else {"x": action.x, "y": action.y}
    button = BUTTONS[action.button]
    match action.kind:
        case "move":
            yield _call("MOVE_TO", **place)
        case "click":
            yield _call("CLICK", **place, button=button, num_clicks=action.times)
        case "down" | "up":
            yield _call("MOUSE_DOWN" if action.kind == "down" else "MOUSE_UP", button=button)
        case "drag":
            yield _call("DRAG_TO", **place)
        case "scroll":
            yield from [_call("MOVE_TO", **place)] if place else []
            yield _call("SCROLL", dx=round(action.dx / NOTCH), dy=-round(action.dy / NOTCH))
        case "type":
            yield from [_call("CLICK", **place, button="left", num_clicks=1)] if place else []
            yield _call("TYPING", text=action.text)
        case "chord":
            yield _call("HOTKEY", keys=list(action.keys))
        case "wait":
            yield _call("WAIT", seconds=action.wait / 1000)
        case "done" | "fail":
            yield _call(action.kind.upper())
        case kind:
            name = {"press": "PRESS", "hold": "KEY_DOWN", "let_go": "KEY_UP"}[kind]
            yield from (_call(name, key=key) for key in action.keys)


def _call(kind: str, **parameters: Any) -> Call:
    return {"action_type": kind, **parameters}
