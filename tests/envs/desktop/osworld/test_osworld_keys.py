"""Keys as OSWorld gets them: it raises for a name that its list does not have, which would cost the episode.

`keyboard_keys.json` has that list, KEYBOARD_KEYS, as a commit of Gen-Verse/Open-AgentRL has it. The tests of a checkout
compare the two, and send the same keys through the real controller.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from envs.computer import tool_calls
from envs.computer.actions import Action
from envs.computer.calls import calls
from envs.computer.keyboard import DESKTOP
from envs.desktop.bridge import osworld_bridge

KNOWN = json.loads((Path(__file__).parent / "keyboard_keys.json").read_text())
SIGNS = [chr(number) for number in range(32, 127)]


@pytest.mark.parametrize("kind", ["PRESS", "KEY_DOWN", "KEY_UP", "HOTKEY"])
def test_osworld_gets_names_that_its_list_has(kind):
    for name in (*DESKTOP.names, *SIGNS, "é"):
        given = {"keys": ["ctrl", name]} if kind == "HOTKEY" else {"key": name}
        action = tool_calls.read({"action_type": kind, **given}, DESKTOP)
        assert isinstance(action, Action), name
        for move in (move for call in calls(action) for move in osworld_bridge.plain(call)):
            if move != "WAIT" and move["action_type"] != "TYPING":
                parameters = move["parameters"]
                for key in parameters.get("keys", [parameters.get("key")]):
                    assert key.lower() in KNOWN["keys"], name
