"""Actions as Qwen's vision models were trained to write them: the tool `computer_use`, whose places are from 0 to 999.

`{"name": "computer_use", "arguments": {"action": "left_click", "coordinate": [500, 300]}}`. The authors' release reads
the same tool for Qwen3-VL (Open-AgentRL, mm_agents/qwen3vl_agent_local.py), and puts its values into Python code.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from envs.computer.actions import (
    LARGEST,
    LONGEST_TEXT,
    LONGEST_WAIT,
    MOST_KEYS,
    Action,
    Refusal,
    encodable,
)
from envs.computer.keyboard import DESKTOP
from envs.computer.tool_calls import NOTCH
from rlanything.core.errors import ModelOutputError

NAME = "computer_use"
GRID = 999
"""The largest coordinate: the right and the lower edge of any screen."""
Arguments = Mapping[str, Any]
Screen = tuple[int, int]


class _Wrong(ModelOutputError):
    """An argument that is not allowed; becomes a `Refusal`."""


def read(call: Mapping[str, Any], screen: Screen) -> Action | Refusal:
    """The action of a call of this tool. screen: width and height, pixels. The call is untrusted JSON."""
    given = call.get("arguments")
    if not isinstance(given, dict):
        return Refusal("arguments must be a JSON object.")
    named = given.get("action")
    made = ACTIONS.get(named) if isinstance(named, str) else None
    if made is None:
        return Refusal(f"action must be one of {', '.join(ACTIONS)}.")
    try:
        return made(given, screen)
    except _Wrong as error:
        return Refusal(str(error))


def _number(value: object, name: str, low: float, high: float) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not low <= value <= high:
        raise _Wrong(f"{name} must be a number from {low:g} to {high:g}.")
    return float(value)


def _place(given: Arguments, screen: Screen, needed: bool = False) -> dict[str, Any]:
    """The pixels of `coordinate`, which is relative to the screen."""
    if "coordinate" not in given and not needed:
        return {}
    pair = given.get("coordinate")
    if not isinstance(pair, list) or len(pair) != 2:
        raise _Wrong("coordinate must be two numbers.")
    x, y = (
        min(int(_number(value, "coordinate", 0, GRID + 1) * size / GRID), size - 1)
        for value, size in zip(pair, screen, strict=True)
    )
    return {"x": x, "y": y}


def _click(button: int, times: int) -> Callable[[Arguments, Screen], Action]:
    return lambda given, screen: Action("click", button=button, times=times, **_place(given, screen))


def _type(given: Arguments, _screen: Screen) -> Action:
    text = given.get("text")
    if not isinstance(text, str) or len(text) > LONGEST_TEXT or not encodable(text):
        raise _Wrong(f"text must be a text of at most {LONGEST_TEXT} characters.")
    return Action("type", text=text)


def _keys(given: Arguments, _screen: Screen) -> Action:
    value = given.get("keys")
    wanted = value if isinstance(value, list) else [value]
    keys = tuple(
        DESKTOP.key(name.strip()) if isinstance(name, str) else None for name in wanted[: MOST_KEYS + 1]
    )
    known = tuple(name for name in keys if name is not None)
    if not 1 <= len(known) == len(keys) <= MOST_KEYS:
        raise _Wrong(f"keys must name 1 to {MOST_KEYS} known keys.")
    return Action("chord" if len(known) > 1 else "press", keys=known)


def _scroll(given: Arguments, screen: Screen, sideways: bool = False) -> Action:
    # Qwen's `pixels` are notches, up above 0, as the authors' release takes them.
    notches = round(_number(given.get("pixels"), "pixels", -LARGEST // NOTCH, LARGEST // NOTCH))
    moved: dict[str, Any] = {"dx": NOTCH * notches} if sideways else {"dy": -NOTCH * notches}
    return Action("scroll", **moved, **_place(given, screen))


def _wait(given: Arguments, _screen: Screen) -> Action:
    return Action("wait", wait=int(1000 * _number(given.get("time", 1), "time", 0, LONGEST_WAIT / 1000)))


ACTIONS: dict[str, Callable[[Arguments, Screen], Action]] = {
    "key": _keys,
    "type": _type,
    "mouse_move": lambda given, screen: Action("move", **_place(given, screen, needed=True)),
    "left_click": _click(0, 1),
    "left_click_drag": lambda given, screen: Action("drag", **_place(given, screen, needed=True)),
    "right_click": _click(2, 1),
    "middle_click": _click(1, 1),
    "double_click": _click(0, 2),
    "triple_click": _click(0, 3),
    "scroll": _scroll,
    "hscroll": lambda given, screen: _scroll(given, screen, sideways=True),
    "wait": _wait,
    "terminate": lambda given, _: Action("fail" if given.get("status") == "failure" else "done"),
}
"""By the value of `action`."""
