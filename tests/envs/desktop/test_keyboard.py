"""Ordinary replies that must not cost a desktop: odd texts and keys, long texts, and keys that stay down."""

from __future__ import annotations

import json
import time

import pytest
from desktop_cases import small_task

EDITOR = {"launch": ["mousepad", "a.txt"], "files": {"a.txt": ""}}
SAVE = [{"action_type": "HOTKEY", "keys": ["ctrl", "s"]}, {"action_type": "WAIT", "seconds": 1}]


def written(world, wanted: str, *actions) -> bool:
    """Whether these actions in an empty file of the editor leave the text `wanted`."""
    world.reset({**EDITOR, "checks": [{"file": "a.txt", "equals": wanted}]}, 0)
    world.step([*actions, {"action_type": "WAIT", "seconds": 1}, *SAVE])
    return world.evaluate() == 1.0


def typing(text: str) -> dict:
    return {"action_type": "TYPING", "text": text}


def key(name: str, kind: str = "PRESS") -> dict:
    return {"action_type": kind, "key": name}


@pytest.mark.long
@pytest.mark.parametrize(
    "text",
    [
        "Grüße an señor: 漢字 — “quoted” 😀 €",
        "съешь ещё этих мягких французских булок, да выпей чаю. " * 4,
        "a first line\n\n\nb\tc",
        "a\nb\n\nc",
    ],
)
def test_letters_of_other_languages_and_line_breaks_are_typed(world, text):
    assert written(world, text, typing(text))


@pytest.mark.long
def test_many_foreign_letters_do_not_keep_the_next_episode_waiting(world):
    world.reset({**EDITOR, "checks": []}, 0)
    world.step([typing("".join(chr(0x4E00 + place) for place in range(100)) * 2)])
    assert written(world, "abc", typing("abc"))


@pytest.mark.long
def test_a_long_text_of_short_lines_that_changes_nothing_is_typed_in_time(world):
    world.reset({"launch": ["thunar", "/home/user"], "checks": []}, 0)
    started = time.monotonic()
    world.step([typing("\x1b\n" * 250)])
    assert time.monotonic() - started < 45  # with a pause of half a second after each it would be 125


@pytest.mark.long
@pytest.mark.parametrize("held", [key("ctrl", "KEY_DOWN"), key("capslock"), {"action_type": "MOUSE_DOWN"}])
def test_what_is_held_is_let_go_before_the_next_episode(world, held):
    world.reset({**EDITOR, "checks": []}, 0)
    world.step([{"action_type": "MOVE_TO", "x": 300, "y": 300}, held])
    assert written(world, "xs", key("x"), key("s"))


LISTENER = """
import ctypes, select
x = ctypes.CDLL("libX11.so.6")
x.XOpenDisplay.restype = ctypes.c_void_p
display = ctypes.c_void_p(x.XOpenDisplay(None))
x.XkbSelectEvents(display, ctypes.c_uint(0x100), ctypes.c_ulong(3), ctypes.c_ulong(3))
x.XSync(display, 0)
seen = select.select([x.XConnectionNumber(display)], [], [], 8)[0]
open("said", "w").write("a new keyboard" if seen else "nothing")
"""
"""Says whether the X server tells its clients of a new keyboard, upon which openbox takes its shortcuts anew."""


@pytest.mark.long
def test_the_first_key_of_a_desktop_changes_no_keyboard(world):
    task = {"launch": ["lxterminal", "--command=python3 listen.py"], "files": {"listen.py": LISTENER}}
    world.reset({**task, "checks": [{"file": "said", "equals": "nothing"}]}, 0)
    wait = {"action_type": "WAIT", "seconds": 3}
    world.step([wait, key("shift"), *[wait] * 3])
    assert world.evaluate() == 1.0


ODD = [
    *({"action_type": "TYPING", "text": text} for text in (
        "a\0b", "half \ud83d", "a\x1b[2Jb", "\ufffe\uffff\U000e1fff", "e\u0301\u202e\u2028", "x" * 2000, "x" * 2001,
        "漢" * 500, "".join(chr(0x4E00 + place) for place in range(101)), "--help", "-", "",
    )),
    *({"action_type": "PRESS", "key": name} for name in ("\0", "\ud83d", "😀", "\U0010ffff", "+", "F13", "--", "")),
    {"action_type": "HOTKEY", "keys": ["ctrl", "😀"]},
    {"action_type": "HOTKEY", "keys": ["ctrl", "alt", "backspace"]},
    {"action_type": "CLICK", "x": 10**400, "y": 1},
    {"action_type": "SCROLL", "dx": 5000, "dy": -5000},
    {"action_type": "DRAG_TO", "x": 0, "y": 0},
]  # fmt: skip


@pytest.mark.long
def test_odd_replies_are_done_or_refused_in_text_and_the_desktop_goes_on(desktop):
    environment = desktop.environment()
    environment.reset(small_task("editor-add-line", "evaluator1"), 0)
    for action in ODD:
        answer = environment.step(json.dumps(action))
        assert answer.observation.text.startswith("You ")
        assert not answer.done
    assert "no keyboard types" in environment.step("type 0 a\0b").observation.text
    assert not environment._world.broken
    environment.close()
    environment.reset(small_task("editor-add-line", "evaluator1"), 0)
    environment.close()
