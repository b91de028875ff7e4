"""The protocol from the side that asks: worlds that answer with garbage or late, or end, or cannot be started."""

from __future__ import annotations

import base64
import io
import json
import os
import sys
import time

import psutil
import pytest
from desktop_cases import BRIDGE, SCREEN, TYPED, content, liar, settings
from PIL import Image as Pixels

from envs.desktop.bridge import answers, osworld_bridge
from envs.desktop.bridge.answers import TaskFailed, WorldError, WorldTimeout
from envs.desktop.bridge.pool import Pool
from envs.desktop.bridge.world import World, expanded
from envs.desktop.play.environment import DesktopEnvironment
from rlanything.core.errors import MachineError
from rlanything.core.types import Task


def picture() -> str:
    """A screenshot of the right size, as a world sends it."""
    held = io.BytesIO()
    Pixels.new("L", SCREEN).save(held, "PNG")
    return base64.b64encode(held.getvalue()).decode()


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
        (ok(f'{{"screenshot": "{picture()}"}}'), "no accessibility tree"),
        (liar("print('x' * (65 * 2**20), flush=True)"), "more than 67108864 bytes"),
    ],
    ids=range(13),
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


def test_a_command_that_ends_before_it_says_hello_is_known_before_any_episode():
    pool = Pool(settings((sys.executable, "-c", "import no_such_module")), 1)
    for _ in range(2):
        with pytest.raises(MachineError, match=r"no world can be started: .* it wrote: .*No module named"):
            pool.ready()


def test_the_pool_gives_no_more_worlds_than_there_are():
    pool = Pool(settings(), 1)
    world = pool.take()
    with pytest.raises(WorldError, match="all 1 worlds"):
        pool.take()
    pool.give_back(world)
    assert pool.take() is world
    assert pool.starts == 1
    world.close()


def test_a_pool_whose_worlds_are_not_used_again_ends_each_with_its_episode():
    pool = Pool(settings(ok('{"tree": "<a/>"}'), pictures=False), 1, reuse=False)
    pool.ready()
    waiting = pool.take()
    pool.give_back(waiting)
    environment = DesktopEnvironment(pool, lambda _: {})
    worlds = []
    for _ in range(3):
        environment.reset(Task("desktop", "Do it.", {}), 0)
        worlds.append(environment._world)
    environment.close()
    assert worlds[0] is waiting, "nobody had an episode in it"
    assert len(set(worlds)) == pool.starts == 3
    assert all(world.broken for world in worlds)
    assert (pool._free, pool._taken) == ([], 0)


def test_a_world_has_ended_before_its_place_is_free(monkeypatch):
    pool, taken = Pool(settings(), 1, reuse=False), []
    world = pool.take()
    world.used = True
    close = World.close
    monkeypatch.setattr(World, "close", lambda self: (taken.append(pool._taken), close(self)))
    pool.give_back(world)
    assert (taken, pool._taken) == ([1], 0)


@pytest.mark.parametrize(
    ("said", "score"), [("1" + "0" * 400, 1.0), ("-" + "1" * 400, 0.0), ("0.25", 0.25), ("true", 1.0)]
)
def test_a_score_is_from_0_to_1_however_large_the_number(said, score):
    assert answers.score({"score": json.loads(said)}) == score


def test_a_world_whose_tree_is_no_xml_is_ended_and_its_episode_is_over():
    pool = Pool(settings(ok('{"tree": "<a"}'), pictures=False), 1)
    environment = DesktopEnvironment(pool, lambda _: {})
    with pytest.raises(WorldError, match="no XML"):
        environment.reset(Task("desktop", "Do it.", {}), 0)
    assert environment.over
    assert (pool._free, pool._taken) == ([], 0)


def test_an_episode_does_not_pay_for_a_world_that_another_one_has_broken():
    """These worlds end where a second task is set up in them."""
    answer = 'print(json.dumps({"id": ID, "ok": {"tree": "<a/>"}}), flush=True)'
    pool = Pool(settings(liar(f'ID == 2 or sys.exit("spoilt"); {answer}'), pictures=False), 2)
    environments = [DesktopEnvironment(pool, lambda _: {}) for _ in range(2)]
    for starts in (2, 4):
        for environment in environments:
            environment.reset(Task("desktop", "Do it.", {}), 0)
            assert not environment.over
        for environment in environments:
            environment.close()
        assert pool.starts == starts
    pool.close()


def test_a_world_that_breaks_at_its_first_task_costs_the_episode():
    pool = Pool(settings(liar("sys.exit('out of memory')")), 1)
    with pytest.raises(WorldError, match="out of memory"):
        DesktopEnvironment(pool, lambda _: {}).reset(Task("desktop", "Do it.", {}), 0)
    assert pool.starts == 1


def test_a_fresh_world_takes_the_place_of_one_that_waits():
    pool = Pool(settings(), 1)
    used = pool.take()
    pool.give_back(used)
    fresh = pool.take(fresh=True)
    assert fresh is not used
    assert used.broken
    with pytest.raises(WorldError, match="all 1 worlds"):
        pool.take(fresh=True)
    fresh.close()
