"""The bridge over a stand-in for OSWorld's class: episodes, faults, actions, and what it says of itself."""

from __future__ import annotations

import json
import shutil
import subprocess
from concurrent.futures import ThreadPoolExecutor

import pytest
from desktop_cases import BRIDGE, SCREEN, STUB, TYPED, content, settings

from envs.desktop.bridge import osworld_bridge
from envs.desktop.bridge.answers import TaskFailed, WorldError
from envs.desktop.bridge.pool import Pool
from envs.desktop.bridge.world import World

DONE = {"action_type": "DONE"}


@pytest.fixture
def world():
    made = World(settings())
    yield made
    made.close()


def typing(text: str) -> dict:
    return {"action_type": "TYPING", "text": text}


def test_an_episode_goes_over_the_bridge(world):
    assert world.hello.screen == SCREEN
    assert world.hello.facts["provider"] == "docker"
    assert len(world.hello.facts["evaluators"]) == 64
    sight = world.reset(content("t", TYPED), 0)
    assert (sight.screenshot.width, sight.screenshot.height) == SCREEN
    assert "Save" in sight.tree
    assert "a&lt;b" in world.step([{"action_type": "CLICK", "x": 1, "y": 2}, typing("a<b")]).tree
    assert world.step([DONE]).done
    assert world.evaluate() == 1.0
    world.reset(content("t", TYPED), 0)
    world.step([DONE])
    assert world.evaluate() == 0.0


def test_a_task_that_cannot_be_done_is_solved_by_saying_so(world):
    world.reset(content("t", {"func": "infeasible"}), 0)
    assert world.step([{"action_type": "FAIL"}]).done
    assert world.evaluate() == 1.0


def test_giving_up_a_task_that_can_be_done_is_no_success(world):
    for last, score in [("FAIL", 0.0), ("DONE", 1.0)]:
        world.reset(content("t", TYPED), 0)
        world.step([typing("a<b")])
        assert world.step([{"action_type": last}]).done
        assert world.evaluate() == score


def test_an_evaluator_that_raises_is_an_error_and_the_world_goes_on(world):
    world.reset(content("t", {"func": "raise"}), 0)
    with pytest.raises(TaskFailed, match="ValueError: the file is gone"):
        world.evaluate()
    world.reset(content("t", TYPED), 0)
    assert world.evaluate() == 0.0


@pytest.mark.parametrize(
    ("task", "message"),
    [
        ({"id": "t", "instruction": "x", "evaluator": TYPED}, "KeyError: 'config'"),
        (content("t", {"func": "no such metric"}), "no such metric"),
        (content("t", TYPED, config=[{}]), "Setup step 1 failed: 'type'"),
        (
            content("t", TYPED, config=[{"type": "download"}]),
            "Setup step 1 failed: Setup Download - Invalid URL",
        ),
    ],
)
def test_a_task_that_is_wrong_is_its_own_fault_and_the_world_goes_on_reverted(world, task, message):
    with pytest.raises(TaskFailed, match=message):
        world.reset(task, 0)
    world.reset(content("t", {"func": "reverted"}), 0)
    assert world.evaluate() == 1.0


@pytest.mark.parametrize(
    ("task", "message"),
    [
        (content("t", TYPED, config="no snapshot"), "no such snapshot"),
        (content("t", TYPED, config="no machine"), "the provider has no machine"),
        (content("t", TYPED, config=[{"type": "unreachable"}]), "Setup step 1 failed: the machine does not"),
        (content("t", {"func": "unreachable"}), "ConnectionResetError: the machine does not answer"),
        (content("t", {"func": "swallowed"}), "OSError: the machine was not reached when it was evaluated"),
    ],
)
def test_a_machine_that_fails_is_a_fault_of_the_world_and_replaced(task, message):
    pool = Pool(settings(), 1)
    world = pool.take()
    with pytest.raises(WorldError, match=message) as caught:
        world.reset(task, 0), world.evaluate()
    assert not isinstance(caught.value, TaskFailed)
    pool.give_back(world)
    fresh = pool.take()
    assert fresh is not world
    fresh.reset(content("t", TYPED), 0)
    fresh.close()


@pytest.mark.parametrize(
    ("task", "message"),
    [
        (content("t", TYPED, config="blind"), "OSWorld returned no screenshot"),
        (content("t", {"func": "nan"}), "no number"),
        (content("t", TYPED, config="treeless"), "OSWorld returned no accessibility tree"),
        (content("t", TYPED, config="die"), "the world ended"),
    ],
)
def test_a_world_that_fails_says_so_and_is_not_used_again(task, message):
    pool = Pool(settings(), 1)
    world = pool.take()
    with pytest.raises(WorldError, match=message):
        world.reset(task, 0), world.step([DONE]), world.evaluate()
    pool.give_back(world)
    fresh = pool.take()
    assert (fresh is world) is (not world.broken)
    fresh.reset(content("t", TYPED), 0)
    fresh.close()


def test_worlds_that_evaluate_the_same_task_at_the_same_time_have_a_folder_each(tmp_path):
    meeting, cache = tmp_path / "meeting", tmp_path / "cache"
    meeting.mkdir()
    worlds = [World(settings((*BRIDGE, "--cache_dir", str(cache)))) for _ in range(3)]
    for place, world in enumerate(worlds):
        world.reset(content("t", {"func": "fetched", "meeting": str(meeting), "count": 3}), 0)
        world.step([typing(f"result {place}")])
    with ThreadPoolExecutor() as threads:
        assert list(threads.map(World.evaluate, worlds)) == [1.0, 1.0, 1.0]
    assert len(list(cache.glob("world-*/t/result.txt"))) == 3
    for world in worlds:
        world.close()
    assert list(cache.iterdir()) == []


@pytest.mark.parametrize(
    ("action", "moves"),
    [
        ({"action_type": "DONE"}, ["DONE"]),
        ({"action_type": "WAIT", "seconds": 0}, ["WAIT"]),
        ({"action_type": "PRESS", "key": "'"}, [{"action_type": "TYPING", "parameters": {"text": "'"}}]),
        ({"action_type": "KEY_DOWN", "key": "\\"}, [{"action_type": "TYPING", "parameters": {"text": "\\"}}]),
        ({"action_type": "KEY_UP", "key": "'"}, ["WAIT"]),
        ({"action_type": "PRESS", "key": "é"}, [{"action_type": "TYPING", "parameters": {"text": "é"}}]),
        ({"action_type": "HOTKEY", "keys": ["ctrl", "ß"]}, ["WAIT"]),
        ({"action_type": "HOTKEY", "keys": ["ctrl", "'"]}, ["WAIT"]),
        (
            {"action_type": "HOTKEY", "keys": ["super", "l"]},
            [{"action_type": "HOTKEY", "parameters": {"keys": ["win", "l"]}}],
        ),
        (
            {"action_type": "CLICK", "x": 1, "y": 2},
            [{"action_type": "CLICK", "parameters": {"x": 1, "y": 2}}],
        ),
    ],
)
def test_actions_become_those_of_osworld(action, moves):
    assert osworld_bridge.plain(action) == moves


@pytest.mark.parametrize(
    "action",
    [
        None,
        {},
        {"action_type": "CLICK", "x": "1); import os"},
        {"action_type": "CLICK", "x": 1.5},
        {"action_type": "CLICK", "code": 1},
        {"action_type": "WAIT", "seconds": 1e9},
        {"action_type": "CLICK", "button": "left'"},
    ],
)
def test_other_actions_are_refused(action):
    with pytest.raises(osworld_bridge.Refused):
        osworld_bridge.plain(action)


def described(stub=STUB) -> dict[str, str]:
    command = [word if word != str(STUB) else str(stub) for word in BRIDGE]
    return json.loads(
        subprocess.run([*command, "--describe"], capture_output=True, text=True, check=True).stdout
    )


def test_the_digest_of_the_evaluators_needs_no_virtual_machine():
    assert len(described()["evaluators"]) == 64


def test_a_commit_is_that_of_a_repository_that_has_the_package_and_not_of_one_around_it(tmp_path):
    project = tmp_path / "project"
    installed = project / "venv" / "site-packages"
    shutil.copytree(STUB, installed)
    git = ["git", "-C", str(project), "-c", "user.name=a", "-c", "user.email=a@example.org"]
    subprocess.run(["git", "init", "-q", str(project)], check=True)
    subprocess.run([*git, "commit", "-q", "--allow-empty", "-m", "a project"], check=True)
    assert "commit" not in described(installed)
    subprocess.run([*git, "add", "-f", "venv/site-packages/desktop_env"], check=True)
    subprocess.run([*git, "commit", "-q", "-m", "OSWorld"], check=True)
    head = subprocess.run(
        [*git, "rev-parse", "HEAD"], capture_output=True, text=True, check=True
    ).stdout.strip()
    assert described(installed)["commit"] == head
