"""The box around the small desktop: what programs that an agent starts can reach, and what they can use up."""

from __future__ import annotations

import contextlib
import time
from pathlib import Path

import psutil
import pytest
from desktop_cases import SHELL, typed

from envs.desktop.bridge.answers import WorldError, WorldTimeout
from envs.desktop.small import box

ATTACK = """
import ctypes, os
def tried(what):
    try:
        return "reached" if what() not in (-1, None) else "closed"
    except OSError:
        return "closed"
for number in sorted(int(name) for name in os.listdir("/proc") if name.isdigit()):
    if "world.main" in open(f"/proc/{number}/cmdline").read():
        at = f"/proc/{number}/"
        print(*map(tried, [
            lambda: os.readlink(at + "fd/3"), lambda: open(at + "fd/3", "w"), lambda: open(at + "fd/4", "w"),
            lambda: open(at + "mem", "rb"), lambda: open(at + "environ"),
            lambda: ctypes.CDLL(None).ptrace(16, number, 0, 0),
        ]))
os.kill(1, 9)
print("still here")
"""
FILL = """
import errno, os
for place in ("/tmp", "/run/user", "/dev/shm", "/home/user", "/", "/dev", "/run", "/home", "/world"):
    written = 0
    try:
        with open(place + "/big", "wb", buffering=0) as opened:
            while True:
                written += opened.write(bytes(2**20))
    except OSError as error:
        print(place, -(-written // 2**26), errno.errorcode[error.errno])
    if place == "/home/user":
        os.remove(place + "/big")
"""
FULL = """/tmp 2 ENOSPC
/run/user 1 ENOSPC
/dev/shm 1 ENOSPC
/home/user 2 ENOSPC
/ 0 EROFS
/dev 0 EROFS
/run 0 EROFS
/home 0 EROFS
/world 0 EROFS"""
"""In pieces of 64 MB."""
LARGE = """
try:
    bytearray(3 * 2**30)
except MemoryError:
    print("refused")
"""
THREADS = """
import threading
threading.stack_size(2**16)
stay = threading.Event()
started = 0
try:
    while started < 2000:
        threading.Thread(target=stay.wait, daemon=True).start()
        started += 1
except RuntimeError:
    print("the kernel refused" if 900 < started < 1024 else started)
stay.set()
"""
CROWD = """
import os, time
for _ in range(300):
    if not os.fork():
        time.sleep(60)
"""
MANY = """
import os, time
for _ in range(4):
    if not os.fork():
        taken = bytearray(1) * (700 * 2**20)
        time.sleep(60)
"""
SHARED = """
import mmap, os, time
for _ in range(4):
    if not os.fork():
        taken = mmap.mmap(-1, 700 * 2**20)
        for place in range(0, len(taken), mmap.PAGESIZE):
            taken[place] = 1
        time.sleep(60)
"""
SPACES = """
import subprocess
for words in (["unshare", "--user", "true"], ["unshare", "--mount", "true"]):
    print(subprocess.run(words, capture_output=True).returncode)
"""
FONTS = """
import glob
print(len(glob.glob("/run/user/state/CACHE/fontconfig/*.cache-*")))
"""


def run(world, program: str, *checks) -> float:
    """The verdict after a program was run in the terminal, with what it prints in the file `said`."""
    world.reset({**SHELL, "files": {"a.py": program}, "checks": list(checks)}, 0)
    typed(world, "python3 a.py > said\n")
    # A verdict waits three seconds for what a program writes. A busy machine gets ten times as long.
    return next((score for _ in range(10) if (score := world.evaluate()) == 1.0), 0.0)


def test_programs_of_an_agent_cannot_reach_the_process_that_says_the_verdict(world):
    closed = " ".join(["closed"] * 6)
    assert run(world, ATTACK, {"file": "said", "equals": f"{closed}\n{closed}\nstill here"}) == 1.0


@pytest.mark.long
def test_a_program_that_fills_the_files_costs_its_episode_alone(world):
    assert run(world, FILL, {"file": "said", "equals": FULL}) == 1.0
    free = 'import os\nfor p in ("/tmp", "/run/user", "/dev/shm", "/home/user"):\n    print(os.path.exists(p + "/big"))'
    assert run(world, free, {"file": "said", "equals": "\n".join(["False"] * 4)}) == 1.0


def test_a_program_that_takes_too_much_memory_is_refused(world):
    assert run(world, LARGE, {"file": "said", "equals": "refused"}) == 1.0


def test_the_kernel_limits_the_processes_and_threads_of_a_desktop_whoever_started_it(world):
    assert run(world, THREADS, {"file": "said", "equals": "the kernel refused"}) == 1.0
    whole = psutil.Process(world._lines._process.pid)
    assert all(process.uids().real != 0 for process in (whole, *whole.children(recursive=True)))


def test_programs_of_an_agent_make_no_namespace_in_which_they_could_mount_more_memory(world):
    assert run(world, SPACES, {"file": "said", "equals": "1\n1"}) == 1.0


@pytest.mark.skipif(
    not any(Path(box.FONTS).glob("*.cache-*")),
    reason=f"needs {box.FONTS} with caches; `fc-cache -s` makes them",
)
def test_an_application_reads_what_the_system_knows_of_its_fonts_and_not_the_fonts_themselves(world):
    """Where it reads them, it leaves caches of its own, and a reset takes longer."""
    assert run(world, FONTS, {"file": "said", "equals": "0"}) == 1.0


def test_a_desktop_does_not_know_the_machine_nor_its_accounts(world):
    shown = (
        "import os, pwd\nprint(pwd.getpwuid(os.getuid()).pw_name, len(pwd.getpwall()), os.uname().nodename)"
    )
    assert run(world, shown, {"file": "said", "equals": "user 1 desktop"}) == 1.0


def waited(world, command: str, seconds: int = 30) -> None:
    """Type a command, and wait for what it does."""
    typed(world, command)
    for _ in range(seconds):
        world.step([{"action_type": "WAIT", "seconds": 1}])


@pytest.mark.long
@pytest.mark.parametrize(
    ("program", "message"),
    [
        (CROWD, "more than 256 processes"),
        (MANY, "more than 2147483648 bytes"),
        (SHARED, "more than 2147483648 bytes"),
    ],
    ids=["processes", "memory", "shared memory"],
)
def test_programs_that_take_too_much_together_end_the_desktop_and_cost_its_episode_alone(
    desktop, program, message
):
    world = desktop._pool.take()
    world.reset({**SHELL, "files": {"a.py": program}}, 0)
    inside = psutil.Process(world._lines._process.pid).children(recursive=True)
    with pytest.raises(WorldError, match=message):
        waited(world, "python3 a.py\n")
    desktop._pool.give_back(world)
    until = time.monotonic() + 60
    while any(process.is_running() for process in inside) and time.monotonic() < until:
        time.sleep(0.1)
    assert not any(process.is_running() for process in inside)
    fresh = desktop._pool.take()
    assert fresh is not world
    fresh.reset(SHELL, 0)
    desktop._pool.give_back(fresh)


def test_a_fork_bomb_costs_its_episode_alone(desktop):
    """The kernel refuses it more processes. Then it ends by itself, or the desktop is ended."""
    world = desktop._pool.take()
    world.reset(SHELL, 0)
    with contextlib.suppress(WorldError, WorldTimeout):
        waited(world, "f(){ f|f& }; f\n", seconds=3)
        world.reset(SHELL, 0)
    desktop._pool.give_back(world)
    after = desktop._pool.take()
    after.reset(SHELL, 0)
    desktop._pool.give_back(after)
