"""Actions as Qwen's vision models were trained to write them: the tool `computer_use`, whose places are from 0 to 999.

`{"name": "computer_use", "arguments": {"action": "left_click", "coordinate": [500, 300]}}`. The authors' release reads
the same tool for Qwen3-VL (Open-AgentRL, mm_agents/qwen3vl_agent_local.py), and puts its values into Python code.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from envs.computer import arguments
from envs.computer.actions import LARGEST, LONGEST_WAIT, WAIT, Action, Refusal
from envs.computer.arguments import Wrong
from envs.computer.keyboard import Keyboard, together
from envs.computer.tool_calls import NOTCH

NAME = "computer_use"
GRID = 999
"""The largest coordinate: the right and the lower edge of any screen."""
Arguments = Mapping[str, Any]


class Computer(NamedTuple):
    """What the tool is used on. screen: width and height, pixels."""

    screen: tuple[int, int]
    keyboard: Keyboard


def read(call: Mapping[str, Any], computer: Computer) -> Action | Refusal:
    """The action of a call of this tool. The call is untrusted JSON."""
    given = call.get("arguments")
    if not isinstance(given, dict):
        return Refusal("arguments must be a JSON object.")
    named = given.get("action")
    made = ACTIONS.get(named) if isinstance(named, str) else None
    if made is None:
        return Refusal(f"action must be one of {', '.join(ACTIONS)}.")
    try:
        return made(given, computer)
    except Wrong as error:
        return Refusal(str(error))


def _place(given: Arguments, computer: Computer, needed: bool = False) -> dict[str, Any]:
    """The pixels of `coordinate`, which is relative to the screen."""
    if "coordinate" not in given and not needed:
        return {}
    pair = given.get("coordinate")
    if not isinstance(pair, list) or len(pair) != 2:
        raise Wrong("coordinate must be two numbers.")
    x, y = (
        min(int(arguments.number(value, "coordinate", 0, GRID + 1) * size / GRID), size - 1)
        for value, size in zip(pair, computer.screen, strict=True)
    )
    return {"x": x, "y": y}


def _click(button: int, times: int) -> Callable[[Arguments, Computer], Action]:
    return lambda given, computer: Action("click", button=button, times=times, **_place(given, computer))


def _type(given: Arguments, _computer: Computer) -> Action:
    return Action("type", text=arguments.text(given.get("text")))


def _keys(given: Arguments, computer: Computer) -> Action:
    # Qwen's keys may have spaces around their names, and one name may be `ctrl+s`.
    value = given.get("keys")
    names = value if isinstance(value, list) else [value]
    if len(names) == 1 and isinstance(names[0], str):
        names = together(names[0])
    names = [one.strip() if isinstance(one, str) else one for one in names]
    known = arguments.keys(names, "keys", computer.keyboard)
    return Action("chord" if len(known) > 1 else "press", keys=known)


def _scroll(given: Arguments, computer: Computer, sideways: bool = False) -> Action:
    # Qwen's `pixels` are notches, up above 0, as the authors' release takes them. It has no limit for them.
    most = LARGEST // NOTCH
    notches = round(arguments.clamped(given.get("pixels"), "pixels", -most, most))
    moved: dict[str, Any] = {"dx": NOTCH * notches} if sideways else {"dy": -NOTCH * notches}
    return Action("scroll", **moved, **_place(given, computer))


def _wait(given: Arguments, _computer: Computer) -> Action:
    seconds = arguments.clamped(given.get("time", WAIT / 1000), "time", 0, LONGEST_WAIT / 1000)
    return Action("wait", wait=int(1000 * seconds))


ACTIONS: dict[str, Callable[[Arguments, Computer], Action]] = {
    "key": _keys,
    "type": _type,
    "mouse_move": lambda given, computer: Action("move", **_place(given, computer, needed=True)),
    "left_click": _click(0, 1),
    "left_click_drag": lambda given, computer: Action("drag", **_place(given, computer, needed=True)),
    "right_click": _click(2, 1),
    "middle_click": _click(1, 1),
    "double_click": _click(0, 2),
    "triple_click": _click(0, 3),
    "scroll": _scroll,
    "hscroll": lambda given, computer: _scroll(given, computer, sideways=True),
    "wait": _wait,
    "terminate": lambda given, _: Action("fail" if given.get("status") == "failure" else "done"),
}
"""By the value of `action`."""
