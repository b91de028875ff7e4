"""What goes wrong on a small desktop: tasks, applications, servers, and the process that started it."""

from __future__ import annotations

import contextlib
import signal
import subprocess
import sys
import time

import psutil
import pytest
from desktop_cases import SHELL, small_task, solved, typed

from envs.desktop.bridge.answers import TaskFailed, WorldError
from envs.desktop.play import screen


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"launch": ["no-such-app"]}, "no-such-app is not installed: apt install no-such-app"),
        ({"launch": "mousepad"}, "launch must be a program and its arguments"),
        ({"lunch": []}, "keys among launch, begin"),
        ({"begin": ["ctrl+nonsense"]}, "begin: the key is unknown"),
        ({"files": {"../../etc/x": ""}}, "outside the home"),
        ({"files": {"a": "", "a/b": ""}}, "two files of a task have one place"),
        ({"checks": [{"unknown": 1}]}, "a check has one of the keys"),
        ({"checks": [{"cell": "B3", "of": "a"}]}, "has the keys cell, of, value"),
        ({"checks": [{"cell": "AB", "of": "a", "value": ""}]}, "a cell is a letter and a number"),
        ({"checks": [{"folder": "a", "holds": "b"}]}, "only contains and holds are lists"),
        ({"checks": [{"file": 1}]}, "is no text"),
    ],
)
def test_a_task_that_is_wrong_is_its_own_fault_and_the_desktop_goes_on(world, more, message):
    with pytest.raises(TaskFailed, match=message):
        world.reset({"launch": ["mousepad"], "checks": [], **more}, 0)
    assert not world.broken


@pytest.mark.long
@pytest.mark.parametrize(
    ("launch", "message"),
    [(["false"], "false ended with status 1"), (["sleep", "60"], "the window of sleep did not appear")],
)
def test_an_application_that_crashes_or_hangs_is_no_fault_of_the_task_and_the_desktop_is_replaced(
    world, launch, message
):
    with pytest.raises(WorldError, match=message) as caught:
        world.reset({"launch": launch, "checks": [], "patience": 3}, 0)
    assert not isinstance(caught.value, TaskFailed)
    assert world.broken


def application(environment) -> psutil.Process:
    """The application of the task, which has started last."""
    world = psutil.Process(environment._world._lines._process.pid)
    [found] = [one for one in world.children(recursive=True) if one.name() == "mousepad"]
    return found


@pytest.mark.long
@pytest.mark.parametrize("said", ["press ctrl+s", "done"])
def test_an_application_that_crashes_in_an_episode_is_no_failure_of_the_policy(desktop, said):
    environment, made = desktop.environment(), small_task("editor-add-line", "evaluator1")
    environment.reset(made, 0)
    world = environment._world
    application(environment).send_signal(signal.SIGSEGV)
    with pytest.raises(
        WorldError, match="RuntimeError: mousepad crashed: it ended with status -11"
    ) as caught:
        environment.step(said)
    assert not isinstance(caught.value, TaskFailed)
    assert environment.over
    environment.close()
    assert world.broken
    assert solved(desktop, made)


@pytest.mark.long
@pytest.mark.parametrize("end", ["press alt+f4", "press ctrl+q", signal.SIGTERM, signal.SIGKILL])
def test_an_application_that_the_agent_closes_or_kills_is_the_agents_own_doing(desktop, end):
    environment, made = desktop.environment(), small_task("editor-add-line", "evaluator1")
    environment.reset(made, 0)
    if isinstance(end, str):
        environment.step(end)
    else:
        application(environment).send_signal(end)
    assert "mousepad" not in environment.step("wait").observation.text.lower()
    result = environment.step("done")
    assert (result.done, result.success) == (True, False)
    assert not environment._world.broken
    environment.close()


@pytest.mark.long
@pytest.mark.parametrize(
    ("launch", "close"),
    [
        (["lxterminal", "--command=/bin/sh"], [{"action_type": "TYPING", "text": "exit 3\n"}]),
        (["lxterminal"], [{"action_type": "HOTKEY", "keys": ["alt", "f4"]}]),
        *(
            ([name], [{"action_type": "HOTKEY", "keys": ["alt", "f4"]}])
            for name in ("galculator", "thunar", "gnumeric")
        ),
    ],
)
def test_closing_an_application_is_no_crash(world, launch, close):
    world.reset({"launch": launch, "checks": []}, 0)
    sight = world.step(close)
    for _ in range(20):  # a busy machine takes its time
        if not screen.read(sight.tree, world.hello.screen).items:
            break
        sight = world.step([{"action_type": "WAIT", "seconds": 0.5}])
    assert screen.read(sight.tree, world.hello.screen).items == ()
    assert world.evaluate() == 1.0


@pytest.mark.long
def test_an_application_that_stops_is_left_out_of_the_tree(world):
    world.reset(SHELL, 0)
    frozen = typed(world, "kill -STOP $PPID\n")
    assert "terminal" not in frozen.tree
    assert world.reset(SHELL, 0).tree.count("terminal") >= 1


@pytest.mark.long
def test_a_text_that_is_too_long_is_refused_and_not_cut(world):
    world.reset(SHELL, 0)
    with pytest.raises(WorldError, match="Refused: text has more than 2000 characters"):
        world.step([{"action_type": "TYPING", "text": "x" * 2001}])


@pytest.mark.long
def test_what_a_tree_leaves_out_is_counted_in_it(world):
    """Of a list of files: its cells, of which a tree has the first 200."""
    launch = {"launch": ["thunar"], "begin": ["ctrl+2"], "checks": []}
    few = world.reset({**launch, "files": {"a": ""}}, 0)
    assert screen.read(few.tree, world.hello.screen).more == 0
    many = world.reset({**launch, "files": {f"f{number:03}": "" for number in range(200)}}, 0)
    found = screen.read(many.tree, world.hello.screen)
    assert found.more >= 200 * 4 - 200
    assert len(found.items) < screen.MOST_ITEMS


@pytest.mark.long
def test_folders_without_rights_are_removed(world):
    world.reset(SHELL, 0)
    typed(world, "mkdir -p a/b /tmp/c/d; touch a/b/e; chmod 0 a/b a /tmp/c ~\n")
    found = [{"folder": ".", "holds": []}, {"absent": "/tmp/c"}]
    world.reset({**SHELL, "checks": found}, 0)
    assert world.evaluate() == 1.0


NESTED = "import os\nfor _ in range(1200):\n    os.mkdir('d')\n    os.chdir('d')\n"


@pytest.mark.long
def test_neither_deep_folders_nor_what_lies_beside_a_servers_socket_reach_the_next_episode(world):
    world.reset({**SHELL, "files": {"deep.py": NESTED}}, 0)
    typed(world, "python3 deep.py; echo secret > /tmp/.X11-unix/note; mkdir /tmp/.X11-unix/more\n")
    left = ["/tmp/.X11-unix/note", "/tmp/.X11-unix/more"]
    world.reset(
        {**SHELL, "checks": [{"folder": ".", "holds": []}, *({"absent": place} for place in left)]}, 0
    )
    assert world.evaluate() == 1.0


@pytest.mark.long
def test_what_an_agent_did_to_its_files_is_a_verdict_and_no_error(world):
    for command, checks in [
        ("mkdir a; touch a/b; chmod 0 a", [{"file": "a/b"}]),
        ("mkdir a; chmod 0 a", [{"folder": "a", "holds": []}]),
        ("echo x > a.gnumeric; chmod 0 a.gnumeric", [{"cell": "A1", "of": "a.gnumeric", "value": ""}]),
        ("mkfifo a.gnumeric", [{"cell": "A1", "of": "a.gnumeric", "value": ""}]),
    ]:
        world.reset({**SHELL, "checks": checks}, 0)
        typed(world, f"{command}\n")
        assert world.evaluate() == 0.0


def test_signs_that_xml_does_not_have_leave_the_tree_readable(world):
    text = "one\x1b\x7f\x85\ufffe\uffff\U0001f600two"
    sight = world.reset({"launch": ["mousepad", "a.txt"], "files": {"a.txt": f"{text}\n"}, "checks": []}, 0)
    values = [item.value for item in screen.read(sight.tree, world.hello.screen).items]
    assert any("one" in value and "two" in value for value in values)


@pytest.mark.long
@pytest.mark.parametrize("name", ["Xvfb", "dbus-daemon", "openbox"])
def test_a_desktop_without_one_of_its_servers_costs_its_episode_alone(desktop, name):
    environment, made = desktop.environment(), small_task("terminal-make", "evaluator1")
    environment.reset(made, 0)
    for process in psutil.Process(environment._world._lines._process.pid).children(recursive=True):
        with contextlib.suppress(psutil.NoSuchProcess):  # it ended with the one before it
            if process.name() == name:
                process.kill()
                while process.status() != psutil.STATUS_ZOMBIE:
                    time.sleep(0.01)
    with pytest.raises(WorldError) as caught:
        environment.step("wait")
    assert not isinstance(caught.value, TaskFailed)
    environment.close()
    assert solved(desktop, made)


@pytest.mark.long
def test_a_desktop_ends_with_the_process_that_started_it_and_not_with_its_thread(desktop):
    program = (
        "import os, sys, threading\n"
        "from envs.desktop.small import box\n"
        "from envs.desktop.bridge.world import Settings, World\n"
        "made = []\n"
        "thread = threading.Thread(target=lambda: made.append(World(Settings(box.command(), 120, 120))))\n"
        "thread.start(); thread.join()\n"
        "made[0].reset({'launch': ['mousepad'], 'checks': []}, 0)\n"
        "print(made[0]._lines._process.pid, flush=True); os.kill(os.getpid(), 9)\n"
    )
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    until = time.monotonic() + 60
    while psutil.pid_exists(int(found.stdout)) and time.monotonic() < until:
        time.sleep(0.1)
    assert not psutil.pid_exists(int(found.stdout))


@pytest.mark.long
def test_a_desktop_that_is_killed_costs_its_episode_alone(desktop):
    environment = desktop.environment()
    environment.reset(small_task("terminal-make", "evaluator1"), 0)
    for process in psutil.Process(environment._world._lines._process.pid).children(recursive=True):
        with contextlib.suppress(psutil.NoSuchProcess):  # it ended with the one before it
            process.kill()
    with pytest.raises(WorldError, match="the world"):
        environment.step("type 0 x")
    environment.close()
    assert solved(desktop, small_task("terminal-make", "evaluator1"))
