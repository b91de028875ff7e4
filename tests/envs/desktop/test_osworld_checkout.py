"""The bridge over OSWorld's real class and controller, and its real task files, where a checkout is at hand.

`OSWORLD_CHECKOUT` names a folder with `desktop_env` and `evaluation_examples`: a clone of xlang-ai/OSWorld, or the
folder `OSWorld-main` of Gen-Verse/Open-AgentRL, which also has the paper's extension.
"""

from __future__ import annotations

import json
import os
import runpy
import sys
from pathlib import Path

import pytest
from desktop_cases import SCREEN, settings

from envs.computer import tool_calls
from envs.computer.actions import Action
from envs.computer.calls import calls
from envs.computer.keyboard import DESKTOP
from envs.desktop import rewording
from envs.desktop.bridge import osworld_bridge
from envs.desktop.bridge.answers import TaskFailed
from envs.desktop.bridge.world import World
from envs.desktop.osworld import files
from envs.desktop.osworld.family import OSWorldFamily
from envs.desktop.osworld.tasks import templates

CHECKOUT = os.environ.get("OSWORLD_CHECKOUT", "")
pytestmark = pytest.mark.skipif(
    not CHECKOUT, reason="OSWORLD_CHECKOUT is not set: clone xlang-ai/OSWorld or Gen-Verse/Open-AgentRL"
)
RUNNER = Path(__file__).with_name("checkout_bridge.py")
OPTIONS = [
    "--provider_name",
    "docker",
    "--pause",
    "0",
    "--settle",
    "0",
    "--before_evaluation",
    "0",
    "--screen_width",
    "96",
    "--screen_height",
    "64",
]


def task(func, **evaluator):
    return {"id": "t", "instruction": "x", "config": [], "evaluator": {"func": func, **evaluator}}


PARAMETERS = {
    "MOVE_TO": {"x": 1, "y": 2}, "CLICK": {"x": 1, "y": 2, "button": "middle", "num_clicks": 3},
    "MOUSE_DOWN": {"button": "right"}, "DRAG_TO": {"x": 1, "y": 2}, "SCROLL": {"dx": 1, "dy": -1},
    "TYPING": {"text": "a"}, "PRESS": {"key": "space"}, "KEY_DOWN": {"key": "shift"}, "KEY_UP": {"key": "shift"},
    "HOTKEY": {"keys": ["ctrl", "space"]}, "WAIT": {"seconds": 0},
}  # fmt: skip
"""Of the action types that must have some, or may have others than a place."""


def asked(world) -> list[str]:
    """What the machine was asked to run until now."""
    lines = [json.loads(line)[1] for line in world.log.open()]
    return [line["command"][2].rpartition("FAILSAFE = False; ")[2] for line in lines]


def does(world, kind: str, **parameters) -> None:
    """What a model says, as the world gets it. Raises where the real controller does."""
    action = tool_calls.read({"action_type": kind, **parameters}, DESKTOP)
    assert isinstance(action, Action), (kind, parameters)
    world.step(calls(action))


@pytest.fixture
def world(tmp_path):
    log = tmp_path / "asked"
    command = (sys.executable, str(RUNNER), CHECKOUT, osworld_bridge.__file__, str(log), *OPTIONS)
    made = World(settings((*command, "--cache_dir", str(tmp_path / "cache"))))
    made.log = log
    yield made
    made.close()


def test_the_real_class_and_its_controller_do_what_they_are_asked(world):
    assert world.hello.screen == SCREEN
    sight = world.reset(task("typed", result={"type": "stub", "value": "done"}), 0)
    assert (sight.screenshot.width, sight.screenshot.height) == SCREEN
    assert "Save" in sight.tree
    world.step([{"action_type": "CLICK", "x": 5, "y": 6, "button": "left", "num_clicks": 1}])
    world.step([{"action_type": "TYPING", "text": "'a<\\b"}])
    world.step([{"action_type": "HOTKEY", "keys": ["ctrl", "super"]}])
    world.step([{"action_type": "SCROLL", "dx": 0, "dy": -3}])
    assert world.step([{"action_type": "DONE"}]).done
    assert world.evaluate() == 1.0
    assert asked(world) == [
        "pyautogui.click(button='left', x=5, y=6, clicks=1)",
        'pyautogui.typewrite("\'a")',
        "pyautogui.hotkey('shift', ',')",
        "pyautogui.typewrite('\\\\b')",
        "pyautogui.hotkey('ctrl', 'win')",
        "pyautogui.hscroll(0)",
        "pyautogui.vscroll(-3)",
    ]


def test_the_real_controller_knows_every_action_and_every_key(world):
    listed = json.loads((Path(__file__).parent / "osworld" / "keyboard_keys.json").read_text())["keys"]
    actions = runpy.run_path(str(Path(CHECKOUT) / "desktop_env" / "actions.py"))
    assert actions["KEYBOARD_KEYS"] == listed
    world.reset(task("infeasible"), 0)
    for kind in tool_calls.TYPES:
        before = len(asked(world)) if world.log.exists() else 0
        does(world, kind, **PARAMETERS.get(kind, {}))
        assert len(asked(world)) > before or kind in ("WAIT", "DONE", "FAIL")
        world.step(
            [{"action_type": kind, **PARAMETERS.get(kind, {})}]
        )  # also where `calls` writes another one
    before = len(asked(world))
    for name in DESKTOP.names:
        for kind in ("PRESS", "KEY_DOWN", "KEY_UP"):
            does(world, kind, key=name)
        does(world, "HOTKEY", keys=["ctrl", name])
    commands = asked(world)[before:]
    assert len(commands) == 4 * len(DESKTOP.names)
    assert {"pyautogui.press(' ')", "pyautogui.keyUp('win')", "pyautogui.hotkey('ctrl', 'pageup')"} <= {
        *commands
    }


def test_the_real_verdicts(world):
    world.reset(task("infeasible"), 0)
    world.step([{"action_type": "FAIL"}])
    assert world.evaluate() == 1.0
    world.reset(task("infeasible"), 0)
    world.step([{"action_type": "DONE"}])
    assert world.evaluate() == 0.0
    for last, score in [("FAIL", 0.0), ("DONE", 1.0)]:
        world.reset(task("typed", result={"type": "stub", "value": "done"}), 0)
        world.step([{"action_type": last}])
        assert world.evaluate() == score
    world.reset(task("typed", result={"type": "stub"}), 0)
    with pytest.raises(TaskFailed, match="KeyError: 'value'"):
        world.evaluate()


def test_a_task_file_that_is_wrong_is_its_own_fault(world):
    done = task("typed", result={"type": "stub", "value": "done"})
    wrong = [
        ({**done, "config": [{"type": "no_such", "parameters": {}}]}, "cannot find init function"),
        ({**done, "config": [{"type": "download", "parameters": {"files": [{"url": "", "path": ""}]}}]}, "Invalid URL"),
        ({**done, "config": [{"type": "sleep", "parameters": {"minutes": 1}}]}, "unexpected keyword argument"),
        ({"id": "t"}, "KeyError: 'instruction'"),
    ]  # fmt: skip
    for one, message in wrong:
        with pytest.raises(TaskFailed, match=message):
            world.reset(one, 0)
    world.reset(done, 0)
    assert world.evaluate() == 1.0


def test_every_task_file_is_read():
    folder = Path(CHECKOUT) / "evaluation_examples"
    found = files.read_all(folder / "examples", files.index(folder, "test_all.json"))
    assert len(found) == 369
    assert sum(len(ids) for ids in files.index(folder, "test_nogdrive.json").values()) == 361


@pytest.mark.skipif(
    not (Path(CHECKOUT) / "evaluation_examples" / "new_examples").is_dir(),
    reason="no new_examples in OSWORLD_CHECKOUT",
)
def test_the_papers_splits_and_templates_are_read():
    family = OSWorldFamily(str(Path(CHECKOUT) / "evaluation_examples"), ["x"])
    train = family.make("train", 222, 0)
    assert len(family.make("out_of_domain", 139, 0)) == 139
    assert len(family.make("reward_panel", 93, 0)) == 93
    assert sum(len(templates(t)) for t in train) == 294
    assert sum(len(templates(t)) > 1 for t in train) == 46
    for task in [*train, *family.make("in_domain", 222, 0)]:
        assert family.validate(task) == ""
        for key, said in templates(task).items():
            assert rewording.read(rewording.reply(key, said), templates(task))[0] == key
