"""The pool: order, lost boxes, boxes that never start, interruptions, and what is left when its process is killed."""

import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress
from dataclasses import replace

import psutil
import pytest
from docker.errors import APIError
from sandbox_cases import BACKENDS, LIMITS, TAG, opened

from envs.coding.sandbox import MOST_WORKERS, Job, Limits, SandboxError, Status, Stdio, open_sandbox, worker
from envs.coding.sandbox.backends import bwrap, process_box
from envs.coding.sandbox.backends.container import connect
from envs.coding.sandbox.backends.process_box import ProcessBox
from envs.coding.sandbox.backends.unsandboxed import Unsandboxed
from envs.coding.sandbox.pool import Sandbox

ECHO = "print(input())"


def echoes(count):
    return [Job(ECHO, [Stdio(f"{k}-{i}", f"{k}-{i}") for i in range(3)]) for k in range(count)]


def test_verdicts_are_in_the_order_of_the_jobs(trusted):
    slow = "import time\ntime.sleep(0.3)\n" + ECHO
    jobs = [Job(slow if k % 5 == 0 else ECHO, [Stdio(str(k))]) for k in range(20)]
    assert [verdict.outcomes[0].output for verdict in trusted.judge(jobs)] == [f"{k}\n" for k in range(20)]


def test_progress_counts_to_the_end(trusted):
    seen = []
    trusted.judge(echoes(9), progress=lambda done, total: seen.append((done, total)))
    assert seen == sorted(set(seen))
    assert seen[-1] == (9, 9)
    assert trusted.judge([]) == []


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_box_that_is_killed_is_replaced_and_its_work_done_again(request, backend):
    known = psutil.Process().children()
    docker = backend == "docker"
    with opened(request, backend) as sandbox:
        # By the sandbox's own box: on the list there may be those of a test that runs at the same time.
        started = [worker._box._container for worker in sandbox._workers] if docker else []
        boxes = [] if docker else [box for box in psutil.Process().children() if box not in known]

        def kill_once(done, total):
            if done == 3:
                for container in started:
                    # podman kills it, and now and then finds it gone before it has answered.
                    with suppress(APIError):
                        container.kill()
                for process in [child for box in boxes for child in (*box.children(recursive=True), box)]:
                    process.kill()

        verdicts = sandbox.judge(echoes(12), progress=kill_once)
        assert [verdict.status for verdict in verdicts] == [Status.OK] * 12
        assert sandbox.replaced == 1


def containers():
    client = connect()
    return client.containers.list(filters={"ancestor": TAG}, ignore_removed=True)


def test_a_program_that_always_takes_its_box_along_is_infrastructure_and_never_wrong(trusted):
    """Only without isolation can a program do that."""
    killer = "import os\nif input() == 'kill':\n    os.kill(os.getppid(), 9)\nprint(1)"
    jobs = [Job(killer, [Stdio("", "1"), Stdio("kill", "1"), Stdio("", "1")]), *echoes(3)]
    first, *others = trusted.judge(jobs)
    assert [o.status.value for o in first.outcomes] == ["error", "infrastructure", "error"]
    assert first.status is Status.INFRASTRUCTURE
    assert "3 attempts" in first.outcomes[1].error
    assert [verdict.status for verdict in others] == [Status.OK] * 3
    assert trusted.replaced == 3


@pytest.mark.long
def test_a_box_that_is_stuck_is_given_up(monkeypatch):
    monkeypatch.setattr(worker, "GRACE_S", 0.5)
    limits = replace(LIMITS, cpu_s=0.1, wall_s=0.1)
    known = psutil.Process().children()
    with open_sandbox("subprocess", workers=1, limits=limits, trusted=True) as sandbox:
        (box,) = [box for box in psutil.Process().children() if box not in known]
        box.suspend()
        assert sandbox.judge(echoes(1))[0].status is Status.OK
        assert sandbox.replaced >= 1


def test_a_run_that_is_interrupted_leaves_a_usable_sandbox(trusted):
    def interrupt(done, total):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        trusted.judge(echoes(9), progress=interrupt)
    assert [verdict.status for verdict in trusted.judge(echoes(9))] == [Status.OK] * 9


def test_an_error_of_the_comparison_is_not_hidden(trusted):
    with pytest.raises(ZeroDivisionError):
        trusted.judge([Job(ECHO, [Stdio("1", "1")], compare=lambda given, expected: 1 / 0)])
    assert trusted.judge(echoes(1))[0].status is Status.OK


def test_threads_take_turns(trusted):
    found = []
    threads = [threading.Thread(target=lambda: found.extend(trusted.judge(echoes(5)))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [verdict.status for verdict in found] == [Status.OK] * 20


def test_closing_twice_and_working_after_closing(trusted):
    trusted.close()
    trusted.close()
    assert trusted.judge(echoes(2))[0].status is Status.OK


class Broken(Unsandboxed):
    """Boxes that run a command which is no watcher."""

    def __init__(self, command):
        super().__init__(trusted=True)
        self.command, self.started = command, 0

    def start(self):
        self.started += 1
        return ProcessBox(self.command), {}


@pytest.mark.parametrize(
    ("command", "words"),
    [
        (["/bin/sh", "-c", "echo no such library >&2"], "the box ended: no such library"),
        (["/bin/sh", "-c", "head -c 999 /dev/zero; cat"], "something that is no frame"),
        (["/bin/sh", "-c", "printf '\\377\\377\\377\\377'; cat"], "something that is no frame"),
    ],
)
def test_boxes_that_never_start_end_with_their_last_words(command, words):
    backend = Broken(command)
    with pytest.raises(SandboxError, match=r"no box starts: .*" + words):
        Sandbox(backend, 1, Limits())
    assert backend.started == worker.STARTS


def test_a_stuck_box_whose_process_ends_by_itself_is_killed(monkeypatch):
    killed, kill = [], os.kill

    def ends_before(pid, number):
        kill(pid, number)
        killed.append(pid)
        raise ProcessLookupError

    monkeypatch.setattr(process_box, "CLOSE_S", 0.5)
    stuck = ProcessBox(["/bin/sh", "-c", "sleep 60; sleep 60"])
    monkeypatch.setattr(os, "kill", ends_before)
    assert stuck.close() in ("", "Killed")  # the shell may still say what became of its child
    assert killed[-1] == stuck._process.pid
    assert stuck._process.returncode == -signal.SIGKILL


def test_a_missing_program_is_named():
    with pytest.raises(SandboxError, match="/no/such/program cannot be started"):
        Sandbox(Broken(["/no/such/program"]), 1, Limits())


def test_a_box_that_does_not_isolate_is_refused():
    backend = Unsandboxed(trusted=True)
    backend.sealed = True
    with pytest.raises(SandboxError, match="does not isolate"):
        Sandbox(backend, 1, Limits())


HARNESS = """
import sys
from envs.coding.sandbox import *
with open_sandbox(sys.argv[1], workers=2, trusted=True, image=sys.argv[2] or None) as sandbox:
    print("ready", flush=True)
    sandbox.judge([Job("import os, time\\nos.fork()\\ntime.sleep(9)", [Stdio("")])] * 2)
"""


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("death", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_nothing_outlives_a_killed_harness(request, backend, death, tmp_path):
    image = request.getfixturevalue("image") if backend == "docker" else ""
    opened(request, backend).close()
    command = [sys.executable, "-c", HARNESS, backend, image]
    folders = {**os.environ, "TMPDIR": str(tmp_path)}
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=folders) as harness:
        assert harness.stdout.readline() == b"ready\n"
        if backend == "docker":
            wait_until(lambda: len(containers()) == 2)
        else:
            # Two boxes, each with a program and its child; bubblewrap adds a process of its own to each.
            wait_until(lambda: len(descendants(harness)) == (8 if backend == "bwrap" else 6))
        left = descendants(harness)
        assert len(list(tmp_path.iterdir())) == (2 if backend == "subprocess" else 0)
        harness.send_signal(death)
    wait_until(lambda: not any(process.is_running() for process in left))
    wait_until(lambda: backend != "docker" or not containers())
    assert list(tmp_path.iterdir()) == []


def descendants(harness):
    return psutil.Process(harness.pid).children(recursive=True)


def wait_until(reached, seconds=60):
    end = time.monotonic() + seconds
    while not reached():
        assert time.monotonic() < end
        time.sleep(0.05)


def test_every_box_of_root_has_its_own_user_id(request):
    if os.getuid() != 0:
        pytest.skip("only root gives boxes user ids; run this test as root")
    with opened(request, "bwrap") as first, opened(request, "bwrap") as second:
        job = Job("import os\nprint(os.getuid())\nassert os.stat('.').st_uid == os.getuid()", [Stdio("")])
        ids = {int(box.judge([job])[0].outcomes[0].output) for box in (first, second)}
    assert len(ids) == 2
    assert min(ids) > 65536


def test_a_user_id_is_nobody_elses_until_its_box_has_ended(request, monkeypatch):
    if os.getuid() != 0:
        pytest.skip("only root gives boxes user ids; run this test as root")
    monkeypatch.setattr(bwrap, "_lent", {})
    with opened(request, "bwrap") as sandbox:
        (used,) = bwrap._lent
        others = {bwrap.lend_uid() for _ in range(MOST_WORKERS - 1)}
        assert len(others | {used}) == MOST_WORKERS
        with pytest.raises(SandboxError, match=f"{MOST_WORKERS} boxes already"):
            open_sandbox("bwrap", workers=1)
        bwrap.give_back(min(others))
        assert bwrap.lend_uid() == min(others)
        bwrap.give_back(min(others))
        sandbox.close()
        assert bwrap._lent.keys() == others - {min(others)}


def test_a_box_that_does_not_start_gives_its_user_id_back(request, monkeypatch):
    if os.getuid() != 0:
        pytest.skip("only root gives boxes user ids; run this test as root")
    opened(request, "bwrap").close()
    monkeypatch.setattr(bwrap, "_lent", {})
    monkeypatch.setattr(bwrap, "find_bwrap", lambda: "/no/such/program")
    with pytest.raises(SandboxError, match="cannot be started"):
        open_sandbox("bwrap")
    assert bwrap._lent == {}
