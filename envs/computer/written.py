"""Commands of an expert as replies of a model, as the paper asks: a sentence and a call of the tool `computer_use`."""

from __future__ import annotations

import json
from typing import Any

from envs.computer import computer_use
from envs.computer.actions import Refusal
from envs.computer.keyboard import Keyboard
from envs.computer.short import parse

MIDDLE = (computer_use.GRID // 2, computer_use.GRID // 2)
"""The place of what has none that is known: the middle of the screen, 0 to 999."""
CLICKS = {"click": "left_click", "double": "double_click", "right": "right_click", "hover": "mouse_move"}


def answer(command: str, keyboard: Keyboard, place: tuple[int, int] = MIDDLE) -> str:
    """The reply that does what a command says. place: of what the command names, from 0 to 999.

    A text is typed where the focus is. Raises `ValueError` for what is no command.
    """
    call = {"name": computer_use.NAME, "arguments": _arguments(command, keyboard, place)}
    return f"Action: {command}.\n<tool_call>\n{json.dumps(call)}\n</tool_call>"


def _arguments(command: str, keyboard: Keyboard, place: tuple[int, int]) -> dict[str, Any]:
    verb = command.partition(" ")[0]
    if verb in CLICKS:
        return {"action": CLICKS[verb], "coordinate": [*place]}
    action = parse(command, keyboard)
    if isinstance(action, Refusal):
        raise ValueError(f"{command}: {action.reason}")
    match action.kind:
        case "type":
            return {"action": "type", "text": action.text}
        case "press" | "chord":
            return {"action": "key", "keys": list(action.keys)}
        case "wait":
            return {"action": "wait", "time": action.wait // 1000}
        case _:
            return {"action": "terminate", "status": "success" if action.kind == "done" else "failure"}
