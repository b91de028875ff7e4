"""The protocol: the bridge over a stand-in for OSWorld's class, and worlds that answer with garbage or late."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time

import psutil
import pytest
from desktop_cases import BRIDGE, SCREEN, STUB, content, liar, settings

from envs.desktop.bridge import osworld_bridge
from envs.desktop.bridge.answers import TaskFailed, WorldError, WorldTimeout
from envs.desktop.bridge.pool import Pool
from envs.desktop.bridge.world import World, expanded
from rlanything.core.errors import MachineError

TYPED = {"func": "typed", "expected": "a<b"}
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


@pytest.mark.parametrize(
    ("action", "moves"),
    [
        ({"action_type": "DONE"}, ["DONE"]),
        ({"action_type": "WAIT", "seconds": 0}, ["WAIT"]),
        ({"action_type": "PRESS", "key": "'"}, [{"action_type": "TYPING", "parameters": {"text": "'"}}]),
        ({"action_type": "KEY_DOWN", "key": "\\"}, [{"action_type": "TYPING", "parameters": {"text": "\\"}}]),
        ({"action_type": "KEY_UP", "key": "'"}, ["WAIT"]),
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


def ok(content: str) -> tuple[str, ...]:
    return liar(f'print(json.dumps({{"id": ID, "ok": {content}}}), flush=True)')


@pytest.mark.parametrize(
    ("command", "message"),
    [
        (liar("print('garbage', flush=True)"), "no JSON"),
        (liar("print('[' * 100000, flush=True)"), "no JSON"),
        (liar("print('{}', flush=True)"), "another question"),
        (liar('print(json.dumps({"id": ID}), flush=True)'), "neither ok nor error"),
        (
            liar('print(json.dumps({"id": ID, "ok": {}}) + "\\n" + "{}", flush=True)'),
            "more than it was asked",
        ),
        (liar("sys.exit('out of memory')"), "it wrote: out of memory"),
        (ok('{"screenshot": 3}'), "is not a screenshot"),
        (ok('{"screenshot": "!!"}'), "cannot be read: "),
        (ok('{"screenshot": "aGVsbG8="}'), "cannot be read: no PNG"),
        (ok('{"done": 1}'), "is not a screenshot"),
        (ok('{"tree": ""}'), "no screenshot"),
        (liar("print('x' * (65 * 2**20), flush=True)"), "more than 67108864 bytes"),
    ],
    ids=range(12),
)
def test_garbage_is_an_error(command, message, monkeypatch):
    monkeypatch.setattr("envs.desktop.bridge.world.CLOSING", 0.1)  # one waits for ever to be read
    world = World(settings(command))
    with pytest.raises(WorldError, match=message):
        world.reset({}, 0)
    assert world.broken
    with pytest.raises(WorldError, match="failed earlier"):
        world.reset({}, 0)
    world.close()


def test_a_picture_of_another_size_is_an_error():
    command = [word if word != str(SCREEN[0]) else "97" for word in BRIDGE]
    world = World(settings(command))
    world.hello = type(world.hello)("w", SCREEN)
    with pytest.raises(WorldError, match="97 x 64 pixels, the screen 96 x 64"):
        world.reset(content("t", TYPED), 0)
    world.close()


def test_a_late_answer_is_a_timeout_and_never_taken_for_another():
    world = World(settings(liar("time.sleep(60)"), timeout=0.3))
    started = time.monotonic()
    with pytest.raises(WorldTimeout, match=r"did not answer within 0.3 s"):
        world.reset({}, 0)
    assert time.monotonic() - started < 10
    with pytest.raises(WorldError, match="failed earlier"):
        world.evaluate()
    world._lines.close(0.1)


def test_what_a_world_writes_to_standard_error_is_read_and_its_end_is_kept():
    body = "[sys.stderr.write('x' * 2**20) for _ in range(64)]; sys.exit('out of memory')"
    world = World(settings(liar(body)))
    with pytest.raises(WorldError, match=r"it wrote: x{100,600}out of memory$"):
        world.reset({}, 0)
    assert max(map(_size, os.listdir("/proc/self/fd"))) < 2**25
    world.close()


def _size(name: str) -> int:
    """Bytes of an open file of this process that has no name, else 0."""
    place = f"/proc/self/fd/{name}"
    try:
        return os.stat(place).st_size if os.readlink(place).endswith("(deleted)") else 0
    except OSError:
        return 0


def test_nothing_that_a_world_started_is_left_when_it_has_ended():
    body = (
        "import subprocess; left = [subprocess.Popen(['sleep', '300'], start_new_session=own) for own in (0, 1)];"
        "error = {'kind': 'task', 'message': f'{left[0].pid} {left[1].pid}'};"
        "print(json.dumps({'id': ID, 'error': error}), flush=True)"
    )
    world = World(settings(liar(body)))
    with pytest.raises(TaskFailed) as caught:
        world.reset({}, 0)
    started = [psutil.Process(int(number)) for number in str(caught.value).split()]
    assert all(process.is_running() for process in started)
    world.close()
    _gone, left = psutil.wait_procs(started, timeout=30)
    assert left == []


@pytest.mark.parametrize(
    ("hello", "message"),
    [
        ('{"version": 2, "screen": [1, 1]}', "version 2"),
        ('{"version": 1, "screen": [1, true]}', "two numbers"),
        ('{"version": 1, "screen": [1, 1], "facts": []}', "no mapping"),
    ],
)
def test_a_wrong_hello_is_an_error(hello, message):
    body = f'import sys; sys.stdin.readline(); print(\'{{"id": 1, "ok": {hello}}}\', flush=True)'
    with pytest.raises(WorldError, match=message):
        World(settings((sys.executable, "-c", body)))


def test_a_command_that_is_missing_is_named():
    for command, message in [
        ("$NO_SUCH_VARIABLE", "NO_SUCH_VARIABLE is not set"),
        ("a$", r"written as \$\$"),
    ]:
        with pytest.raises(MachineError, match=message):
            World(settings((command,)))
    assert expanded(["$OSWORLD_BRIDGE", "$$x"]) == [osworld_bridge.__file__, "$x"]
    with pytest.raises(MachineError, match="'no-such-world' cannot be started: No such file"):
        World(settings(("no-such-world",)))
    with pytest.raises(MachineError, match="no-such-world"):
        Pool(settings(("no-such-world",)), 1).ready()


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


def test_the_pool_gives_no_more_worlds_than_there_are():
    pool = Pool(settings(), 1)
    world = pool.take()
    with pytest.raises(WorldError, match="all 1 worlds"):
        pool.take()
    pool.give_back(world)
    assert pool.take() is world
    assert pool.starts == 1
    world.close()
