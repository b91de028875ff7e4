"""Measuring a program in a box: its CPU time, and the time that a busy machine took from it."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from envs.coding.sandbox.inside import meter as module
from envs.coding.sandbox.inside import runqueue
from envs.coding.sandbox.inside.meter import STARVED, Meter


def test_waiting_for_a_cpu_is_not_the_programs_fault(monkeypatch):
    meter = Meter({"wall_s": 2.0})
    fair, chosen = 1, 2
    monkeypatch.setattr(module, "steps_back", lambda pid: pid == chosen)
    for wall, waited, pids, end in (
        (1.9, 0.0, [fair], ""),
        (1.9, 1.9, [chosen], ""),
        (2.1, 0.0, [fair], "wall"),
        (2.1, 1.0, [fair], ""),
        (2.1, 1.0, [fair, chosen], "wall"),
        (60.0, 58.5, [fair], ""),
        (60.0, 58.5, [chosen], "wall"),
        (STARVED * 2.0 + 1, STARVED * 2.0, [fair], "starved"),
        (STARVED * 2.0 + 1, STARVED * 2.0, [chosen], "wall"),
        (STARVED * 2.0 + 1, STARVED * 2.0, [fair, fair], "wall"),
    ):
        monkeypatch.setattr(meter, "wall", lambda wall=wall: wall)
        meter.queue.waited = waited
        assert meter._clock(pids) == end


IN_A_THREAD = """
import threading
def low():
    os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), 19)
    ready()
    time.sleep(99)
threading.Thread(target=low).start()
"""
AUTOGROUP = """
os.setsid()
while True:
    try:
        with open("/proc/self/autogroup", "w") as file:
            file.write("1")
        break
    except BlockingIOError:
        time.sleep(0.2)  # the kernel allows it ten times a second, on the whole machine
ready()
"""
CHOICES = {
    "none": ("ready()", False),
    "a session of its own": ("os.setsid()\nready()", False),
    "nice": ("os.nice(1)\nready()", True),
    "nice in a thread": (IN_A_THREAD, True),
    "batch": ("os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))\nready()", True),
    "autogroup": (AUTOGROUP, True),
}


@pytest.mark.parametrize("choice", CHOICES)
def test_who_chose_to_wait_is_known(choice):
    program, chosen = CHOICES[choice]
    if program is AUTOGROUP and not Path("/proc/self/autogroup").exists():
        pytest.skip("this kernel has no autogroups; it needs one with CONFIG_SCHED_AUTOGROUP=y")
    start = "import os, time\ndef ready(): print(1, flush=True)\n"
    command = [sys.executable, "-c", start + program + "\ntime.sleep(99)"]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as child:
        try:
            assert child.stdout.readline() == b"1\n"
            assert runqueue.steps_back(child.pid) is chosen
        finally:
            child.kill()
    assert runqueue.steps_back(child.pid) is False  # it is gone


class Machine:
    """A kernel's books on threads, for a clock that the test sets."""

    def __init__(self, monkeypatch):
        self.now, self.files = 0.0, {}
        monkeypatch.setattr(runqueue.time, "monotonic", lambda: self.now)
        monkeypatch.setattr(runqueue.time, "clock_gettime", lambda clock: self.now)
        monkeypatch.setattr(runqueue, "stat_fields", lambda name: self.files.get(f"{name}/stat", b"").split())
        monkeypatch.setattr(runqueue, "_read", lambda path: self.files.get(path, b""))
        monkeypatch.setattr(
            runqueue, "threads", lambda pid: sorted({path.rpartition("/")[0] for path in self.files})
        )

    def book(self, name, state, ran, waited, started=0.0):
        ticks = int(started / runqueue.TICK_S)
        self.files[f"{name}/stat"] = f"{state} {'0 ' * (runqueue.START - 1)}{ticks}".encode()
        self.files[f"{name}/schedstat"] = f"{round(ran * 1e9)} {round(waited * 1e9)} 1".encode()


SPELLS = st.lists(st.tuples(st.sampled_from("RWS"), st.floats(0.001, 0.4)), min_size=1, max_size=30)
LOOK_S = 0.05


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(SPELLS)
def test_the_wait_of_a_thread_is_known_to_a_look(monkeypatch, spells):
    """It runs, waits (W) and sleeps; a wait is booked when it is over, and yet it counts while it goes on."""
    with monkeypatch.context() as patch:
        machine, truth, booked, ran, most = Machine(patch), 0.0, 0.0, 0.0, 0.0
        queue = runqueue.RunQueue()
        for kind, length in spells:
            for step in [0.01] * round(length / 0.01):
                machine.now += step
                truth += step * (kind == "W")
                ran += step * (kind == "R")
                booked = booked if kind == "W" else truth
                machine.book("main", "S" if kind == "S" else "R", ran, booked)
                if round(machine.now * 100) % 5 == 0:
                    queue.look([1])
                    most = max(most, abs(queue.waited - truth))
    assert most <= 2 * LOOK_S


def test_threads_that_end_take_along_what_a_busy_machine_took_from_them(monkeypatch):
    """Twenty children, one after the other, each gone before its wait is booked; on an idle machine they ran."""
    for share, low, high in ((0.9, 0.8, 1.0), (0.0, 0.0, 0.1)):
        machine = Machine(monkeypatch)
        queue = runqueue.RunQueue()
        for k in range(20):
            machine.files.clear()
            machine.now += LOOK_S + k % 7 / 1000  # in no step with the ticks in which the kernel counts ages
            machine.book("main", "S", 0.02, 0.02 * share / (1 - share))
            life = 0.001 / (1 - share)
            machine.book(f"child{k}", "R", 0.001, share * life, machine.now - life)
            queue.look([1])
        assert low <= queue.waited / machine.now <= high


def test_a_wait_that_is_not_booked_yet_counts_for_threads_that_are_seen_once(monkeypatch):
    """Short children on a busy machine: each is seen while it waits, and has ended at the next look."""
    machine = Machine(monkeypatch)
    queue = runqueue.RunQueue()
    machine.book("main", "S", 0.002, 0.0)
    for k in range(20):
        machine.files.pop(f"child{k - 1}/stat", None)
        machine.files.pop(f"child{k - 1}/schedstat", None)
        machine.now += LOOK_S
        machine.book(f"child{k}", "R", 0.001, 0.0, machine.now - 0.8 * LOOK_S)
        queue.look([1])
    assert queue.waited / machine.now > 0.75


def test_a_name_that_a_program_chose_does_not_stay(monkeypatch):
    name = b"R) 1 2 (" + os.urandom(3).hex().encode()
    code = f"import ctypes, time; ctypes.CDLL(None).prctl(15, {name!r}); print(1, flush=True); time.sleep(9)"
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) as child:
        child.stdout.readline()
        fields = runqueue.stat_fields(f"/proc/{child.pid}")
        assert name in Path(f"/proc/{child.pid}/stat").read_bytes()
        child.kill()
    assert fields[0] in (b"R", b"S")
    assert int(fields[1]) == os.getpid()
    assert not any(runqueue._buffer)
    assert runqueue.stat_fields(f"/proc/{child.pid}") == [b""]


def test_the_threads_of_this_process_and_its_children_are_found():
    with subprocess.Popen(["/bin/sh", "-c", "sleep 9 & wait"]) as child:
        while len(runqueue.descendants(child.pid)) < 1:
            time.sleep(0.01)
        found = runqueue.descendants(os.getpid())
        assert {child.pid, *runqueue.descendants(child.pid)} <= set(found)
        assert os.getpid() not in found
        for process in reversed(found[found.index(child.pid) :]):
            os.kill(process, signal.SIGKILL)
    assert len(runqueue.threads(os.getpid())) >= 1
    assert runqueue.threads(child.pid) == runqueue.descendants(child.pid) == []
