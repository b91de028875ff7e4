"""Actions as tool calls: OSWorld's `computer_13`, one JSON object with `action_type` and its parameters.

Elements may be named by `element`, their number, where OSWorld has only x and y. The names `name` and `arguments`, as
chat models write tool calls, are read too.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from envs.computer import arguments
from envs.computer.actions import BUTTONS, LARGEST, LONGEST_WAIT, WAIT, Action, Refusal
from envs.computer.arguments import Wrong
from envs.computer.keyboard import Keyboard

LONGEST = 10_000
"""Characters of a tool call: JSON writes a line break of what is typed as two, and a letter as six or twelve."""
NOTCH = 15
"""Pixels of one notch of a wheel."""
Arguments = Mapping[str, Any]


def read(call: object, keyboard: Keyboard) -> Action | Refusal:
    """The action of a tool call, or why there is none. `call` is JSON of a stranger."""
    if not isinstance(call, dict):
        return Refusal("that is no JSON object.")
    named = call.get("action_type", call.get("name"))
    given = call.get(
        "parameters", call.get("arguments", {k: v for k, v in call.items() if k != "action_type"})
    )
    made = TYPES.get(named) if isinstance(named, str) else None
    if made is None:
        return Refusal(f"action_type must be one of {', '.join(TYPES)}.")
    if not isinstance(given, dict):
        return Refusal("parameters must be a JSON object.")
    try:
        return made(given, keyboard)
    except Wrong as error:
        return Refusal(str(error))


def _whole(given: Arguments, name: str, low: int, high: int, default: int | None = None) -> int:
    return int(arguments.number(given.get(name, default), name, low, high))


def _place(given: Arguments, needed: bool = True) -> dict[str, Any]:
    """The element or the point that an action is for."""
    if "element" in given:
        return {"number": _whole(given, "element", 1, 9999)}
    if "x" in given or "y" in given:
        return {"x": _whole(given, "x", 0, LARGEST), "y": _whole(given, "y", 0, LARGEST)}
    if needed:
        raise Wrong("x and y, or element, must be given.")
    return {}


def _button(given: Arguments) -> int:
    named = given.get("button", "left")
    if named not in BUTTONS:
        raise Wrong("button must be left, middle or right.")
    return BUTTONS.index(named)


def _click(given: Arguments) -> Action:
    times = _whole(given, "num_clicks", 1, 3, 1)
    return Action("click", button=_button(given), times=times, **_place(given, needed=False))


def _typing(given: Arguments) -> Action:
    return Action("type", text=arguments.text(given.get("text")), **_place(given, needed=False))


def _keys(given: Arguments, keyboard: Keyboard, *names: str) -> tuple[str, ...]:
    value = next((given[name] for name in names if name in given), None)
    return arguments.keys(value, names[0], keyboard)


def _scroll(given: Arguments, keyboard: Keyboard) -> Action:
    """On a page dx and dy are pixels, down above 0. On a desktop they are notches of the wheel, up above 0."""
    dx, dy = (_whole(given, name, -LARGEST, LARGEST, 0) for name in ("dx", "dy"))
    if keyboard.notches:
        most = LARGEST // NOTCH
        dx, dy = NOTCH * min(max(dx, -most), most), -NOTCH * min(max(dy, -most), most)
    return Action("scroll", dx=dx, dy=dy, **_place(given, needed=False))


def _wait(given: Arguments) -> Action:
    return Action("wait", wait=1000 * _whole(given, "seconds", 0, LONGEST_WAIT // 1000, WAIT // 1000))


TYPES: dict[str, Callable[[Arguments, Keyboard], Action]] = {
    "MOVE_TO": lambda given, _: Action("move", **_place(given)),
    "CLICK": lambda given, _: _click(given),
    "MOUSE_DOWN": lambda given, _: Action("down", button=_button(given)),
    "MOUSE_UP": lambda given, _: Action("up", button=_button(given)),
    "RIGHT_CLICK": lambda given, _: Action("click", button=2, **_place(given, needed=False)),
    "DOUBLE_CLICK": lambda given, _: Action("click", times=2, **_place(given, needed=False)),
    "DRAG_TO": lambda given, _: Action("drag", **_place(given)),
    "SCROLL": _scroll,
    "TYPING": lambda given, _: _typing(given),
    "PRESS": lambda given, keyboard: Action("press", keys=_keys(given, keyboard, "key")),
    "KEY_DOWN": lambda given, keyboard: Action("hold", keys=_keys(given, keyboard, "key")),
    "KEY_UP": lambda given, keyboard: Action("let_go", keys=_keys(given, keyboard, "key")),
    "HOTKEY": lambda given, keyboard: Action("chord", keys=_keys(given, keyboard, "keys", "key")),
    "WAIT": lambda given, _: _wait(given),
    "FAIL": lambda _given, _: Action("fail"),
    "DONE": lambda _given, _: Action("done"),
}
"""The action types of `computer_13`."""
