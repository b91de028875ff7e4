"""Mouse and keyboard of the small desktop, by xdotool. Part of the program in the box.

What an agent types reaches xdotool as an argument of its own; nothing is given to a shell.
"""

from __future__ import annotations

import os
import re
import subprocess
import time
from collections.abc import Callable
from typing import Any

from faults import Refused  # type: ignore[import-not-found, unused-ignore]
from keyboard import Keyboard  # type: ignore[import-not-found, unused-ignore]

_WIDTH, _HEIGHT = os.environ["SCREEN"].split("x")
SCREEN = (int(_WIDTH), int(_HEIGHT))
"""Width and height, pixels; the box says them."""
LONGEST_TEXT = 2000
"""Characters of one action. What agents type has no more (`envs.computer.actions`)."""
SHORT = 12
"""Characters of a text whose keys are pressed one by one, each when the one before has been taken."""
ARRIVED = 0.1
"""Seconds for an application to see the pointer where it has moved to. GTK reads movements frame by frame.

A movement that it reads between two clicks makes two single clicks of them.
"""
KEYS = {
    "enter": "Return", "tab": "Tab", "backspace": "BackSpace", "escape": "Escape", "up": "Up", "down": "Down",
    "left": "Left", "right": "Right", "space": "space", "delete": "Delete", "home": "Home", "end": "End",
    "pageup": "Prior", "pagedown": "Next", "insert": "Insert", "capslock": "Caps_Lock", "ctrl": "ctrl", "alt": "alt",
    "shift": "shift", "super": "super", " ": "space", **{f"f{n}": f"F{n}" for n in range(1, 13)},
}  # fmt: skip
Pressed = Callable[[Callable[[], None]], None]
BUTTONS = {"left": "1", "middle": "2", "right": "3"}


def act(action: dict[str, Any], keyboard: Keyboard, pressed: Pressed, settled: Callable[[], None]) -> None:
    """Perform one action of `computer_13`.

    pressed: presses a key, and waits until the application has taken it. settled: waits until what was typed is shown.
    """
    kind = action.get("action_type")
    place = (
        [str(_number(action, name, side)) for name, side in zip("xy", SCREEN, strict=True)]
        if "x" in action
        else []
    )
    button = BUTTONS[action.get("button", "left")]
    if place and kind != "DRAG_TO":
        xdo("mousemove", "--sync", *place)
    if kind == "CLICK":
        _click(_number(action, "num_clicks", 4, 1), button, moved=bool(place))
    elif kind in ("MOUSE_DOWN", "MOUSE_UP"):
        xdo(kind.replace("_", "").lower(), button)
    elif kind == "DRAG_TO":
        xdo("mousedown", "1", "mousemove", "--sync", *place, "mouseup", "1")
    elif kind == "SCROLL":
        _scroll(_number(action, "dx", 1000, 0, -1000), ("6", "7"))
        _scroll(-_number(action, "dy", 1000, 0, -1000), ("4", "5"))
    elif kind == "TYPING":
        _type(_text(action), keyboard, pressed, settled)
    elif kind in ("PRESS", "KEY_DOWN", "KEY_UP"):
        verb = {"PRESS": "key", "KEY_DOWN": "keydown", "KEY_UP": "keyup"}[str(kind)]
        xdo(verb, "--", *_keys([action["key"]], keyboard))
    elif kind == "HOTKEY":
        xdo("key", "--", "+".join(_keys(action["keys"], keyboard)))
    elif kind == "WAIT":
        time.sleep(min(max(float(action.get("seconds", 1)), 0.0), 10.0))
    elif kind != "MOVE_TO":
        raise Refused("the action is unknown")


def xdo(*words: str, patience: float = 20.0) -> None:
    """Run xdotool with these arguments. Raises where it fails, or has not ended after `patience` seconds."""
    subprocess.run(["xdotool", *words], check=True, timeout=patience, stdout=subprocess.DEVNULL)


def key(name: Any) -> str:
    """The keysym of a key."""
    if name in KEYS:
        return KEYS[name]
    if isinstance(name, str) and len(name) == 1:
        return name if name.isascii() and name.isalnum() else f"U{ord(name):04X}"
    raise Refused("the key is unknown")


def _keys(names: list[Any], keyboard: Keyboard) -> list[str]:
    """The keysyms of keys, which the keyboard has from now on."""
    found = list(map(key, names))
    keyboard.lend(set("".join(names)))
    return found


def _text(action: dict[str, Any]) -> str:
    text = str(action["text"])
    if len(text) > LONGEST_TEXT:
        raise Refused(f"text has more than {LONGEST_TEXT} characters")
    return text


def _type(text: str, keyboard: Keyboard, pressed: Pressed, settled: Callable[[], None]) -> None:
    short = (
        len(text) <= SHORT
    )  # a long text with pauses would take longer than a world may take for an answer
    for place, part in enumerate(keyboard.parts(text)):
        if place:
            settled()  # its letters have taken keys over: the keys before must have been read
        for typed in part if short else [part]:
            if short and typed != "\n":
                pressed(lambda typed=typed: _write(typed))  # type: ignore[misc]
            else:
                _write(typed)
    if not text.isascii():
        settled()  # the next episode must not wait for what this one has done to the keyboard


def _write(text: str) -> None:
    words = list[str]()
    for line, breaks in re.findall("([^\n]*)(\n*)", text):
        words += ["type", "--args", "1", "--clearmodifiers", "--delay", "4", "--", line] if line else []
        words += ["key", "--delay", "4", *["Return"] * len(breaks)] if breaks else []
    xdo(*words, patience=20 + len(text) / 100)  # 2,000 letters took 10 s on a busy machine


def _click(times: int, button: str, moved: bool) -> None:
    if moved and times > 1:
        time.sleep(ARRIVED)
    xdo("click", "--repeat", str(times), "--delay", "30", button)


def _scroll(notches: int, buttons: tuple[str, str]) -> None:
    if notches:
        xdo("click", "--repeat", str(min(abs(notches), 50)), "--delay", "5", buttons[notches > 0])


def _number(action: dict[str, Any], name: str, most: int, default: int | None = None, least: int = 0) -> int:
    value = action.get(name, default)
    if type(value) is not int or not least <= value < most:
        raise Refused(f"{name} is no whole number from {least} to {most - 1}")
    return value
