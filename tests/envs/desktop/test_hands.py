"""What mouse and keys do to a real application: each action of `computer_13`, from a reply to what the editor shows."""

from __future__ import annotations

import html
import json
import re

import pytest
from desktop_cases import SHELL

from envs.computer import reply
from envs.computer.actions import Action
from envs.computer.calls import calls
from envs.desktop.play import screen

LINE = " ".join(["word"] * 13)
TEXT = "".join(f"{number:02} {LINE}\n" for number in range(24))
"""As large as the window; the tree has 2,000 characters of it, and so the upper two thirds."""

pytestmark = pytest.mark.long


class Editor:
    """The editor with `TEXT`. at, lower: two of its words."""

    def __init__(self, world) -> None:
        self.world = world
        self.sight = world.reset({"launch": ["mousepad", "a.txt"], "files": {"a.txt": TEXT}, "checks": []}, 0)
        [shown] = [item for item in self.items if item.role == "text"]
        self.at = {"x": shown.x - 30, "y": shown.y - 160}
        self.lower = {"x": shown.x - 30, "y": shown.y - 80}

    @property
    def items(self) -> tuple[screen.Item, ...]:
        """What is in sight."""
        return screen.read(self.sight.tree, self.world.hello.screen).items

    def does(self, kind: str, **parameters) -> None:
        """What a model says, as a world gets it."""
        action = reply.read(json.dumps({"action_type": kind, **parameters}), self.world.hello.screen)
        assert isinstance(action, Action)
        self.sight = self.world.step(calls(action))

    @property
    def text(self) -> str:
        """What the text holds now, as far as the tree has it."""
        return html.unescape(re.search(r"<text [^>]*>([^<]*)</text>", self.sight.tree)[1])


@pytest.fixture
def editor(world):
    return Editor(world)


def test_a_click_a_double_and_a_triple_click(editor):
    editor.does("CLICK", **editor.at)
    editor.does("TYPING", text="X")
    [clicked] = [line for line in editor.text.splitlines() if "X" in line]
    assert len(clicked) == 3 + len(LINE) + 1
    editor.does("DOUBLE_CLICK", **editor.lower)
    editor.does("TYPING", text="Y")
    [twice] = [line for line in editor.text.splitlines() if "word Y word" in line]
    assert twice[:2] > clicked[:2]
    assert len(twice) == 3 + len(LINE) - 3
    editor.does("CLICK", num_clicks=3, **editor.lower)
    editor.does("TYPING", text="Z")
    assert twice[:3] not in editor.text
    assert clicked in editor.text.splitlines()


def test_every_double_click_selects_a_word_however_far_the_pointer_has_moved(editor):
    for place in [editor.at, editor.lower] * 4:
        editor.does("DOUBLE_CLICK", **place)
        before = editor.text
        editor.does("TYPING", text="Y")
        assert len(editor.text) <= len(before)


@pytest.mark.parametrize("held", [False, True])
def test_a_drag_selects_and_so_do_a_button_that_is_held_and_the_pointer(editor, held):
    editor.does("MOVE_TO", **editor.at)
    if held:
        editor.does("MOUSE_DOWN")
        editor.does("MOVE_TO", **editor.lower)
        editor.does("MOUSE_UP")
    else:
        editor.does("DRAG_TO", **editor.lower)
    editor.does("TYPING", text="X")
    kept = [line[:2] for line in editor.text.splitlines()]
    [joined] = [place for place, line in enumerate(editor.text.splitlines()) if "X" in line]
    assert int(kept[joined + 1]) - int(kept[joined]) in (4, 5, 6), "the lines between were selected"
    editor.does("HOTKEY", keys=["ctrl", "z"])
    editor.does("CLICK", **editor.at)
    editor.does("TYPING", text="Z")  # the button is up, and nothing is selected
    [clicked] = [line for line in editor.text.splitlines() if "Z" in line]
    assert len(clicked) == 3 + len(LINE) + 1


def test_a_key_is_held_until_it_is_let_go(editor):
    editor.does("HOTKEY", keys=["ctrl", "home"])
    editor.does("KEY_DOWN", key="shift")
    editor.does("PRESS", key="end")
    editor.does("PRESS", key="a")
    editor.does("KEY_UP", key="shift")
    editor.does("PRESS", key="a")
    assert editor.text.startswith("Aa\n01 word")


def test_a_right_click_opens_a_menu(editor):
    assert "Select All" not in [item.name for item in editor.items]
    editor.does("RIGHT_CLICK", **editor.at)
    assert "Select All" in [item.name for item in editor.items]
    editor.does("PRESS", key="escape")
    assert "Select All" not in [item.name for item in editor.items]


def test_the_wheel_moves_the_text(editor):
    editor.does("HOTKEY", keys=["ctrl", "home"])
    editor.does("MOVE_TO", **editor.at)
    top = editor.sight.screenshot.sha256
    editor.does("SCROLL", dy=-5)
    assert editor.sight.screenshot.sha256 != top
    editor.does("SCROLL", dy=20)
    assert editor.sight.screenshot.sha256 == top


def test_waiting_takes_its_time(editor):
    editor.world.reset(SHELL, 0)
    editor.does("TYPING", text="(sleep 2; echo do''ne) &\n")
    editor.does("WAIT", seconds=4)
    assert "done" in editor.sight.tree
