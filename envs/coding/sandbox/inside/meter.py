"""The resources that a running test uses, from /proc: CPU, memory, files, and the time that it waited for a CPU."""

import os
import resource
import time
from typing import Any

from envs.coding.sandbox.inside.runqueue import TICK_S, RunQueue, descendants, stat_fields, steps_back
from envs.coding.sandbox.inside.seal import SEALED

PAGE = os.sysconf("SC_PAGE_SIZE")
STARVED = 60
"""A test that got no CPU is given up after this many times its limit of wall time."""


def reaped_cpu() -> float:
    """CPU seconds of all processes that this one has waited for."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def oom_kills() -> int:
    """How many processes the kernel ended for want of memory, on the whole machine; 0 where it does not say."""
    with open("/proc/vmstat") as file:
        return next((int(line.split()[1]) for line in file if line.startswith("oom_kill ")), 0)


class Meter:
    """Measures one test: all processes but this one in a sealed box, all below this one elsewhere."""

    def __init__(self, limits: dict[str, Any]) -> None:
        self.limits, self.queue = limits, RunQueue()
        self.start, self.reaped = time.monotonic(), reaped_cpu()

    def wall(self) -> float:
        """Seconds since the start, without those that were excused."""
        return time.monotonic() - self.start

    def excuse(self, seconds: float) -> None:
        """Leave out time that the test had to wait for the harness."""
        self.start += seconds

    def cpu(self) -> float:
        """CPU seconds of what has been waited for since the start: everything, once the test was killed."""
        return reaped_cpu() - self.reaped

    def exceeded(self) -> str:
        """The name of a limit that is exceeded, or ''."""
        pids = _pids()
        self.queue.look(pids)
        seen = {pid: _stat(pid) for pid in pids}
        # user, system, and those of children that were waited for; resident pages
        if self.cpu() + sum(sum(numbers[11:15]) for numbers in seen.values()) * TICK_S > self.limits["cpu_s"]:
            return "cpu"
        if self._too_large({pid: _resident(numbers) for pid, numbers in seen.items()}):
            return "memory"
        if SEALED and self._files() > self.limits["files"]:
            return "files"
        return self._clock(pids)

    def _too_large(self, resident: dict[int, int]) -> bool:
        """Whether processes hold too much memory. Counting shared pages once is slow, so only a close case does."""
        most = self.limits["memory_mb"] << 20
        return sum(resident.values()) > most < sum(map(_share, resident))

    def _files(self) -> int:
        room = os.statvfs(".")
        return room.f_files - room.f_ffree

    def _clock(self, pids: list[int]) -> str:
        """`wall` after sleeping too long; `starved` when a single process got no CPU for much longer than that.

        Several processes may wait for each other, so they are never `starved`. To wait by choice is to sleep.
        """
        wall, limit = self.wall(), self.limits["wall_s"]
        if wall <= limit:
            return ""
        if wall - self.queue.waited > limit or any(map(steps_back, pids)):
            return "wall"
        return ("starved" if len(pids) < 2 else "wall") if wall > STARVED * limit else ""


def _pids() -> list[int]:
    if not SEALED:
        return descendants(os.getpid())
    return [int(name) for name in os.listdir("/proc") if name.isdigit() and name != "1"]


def _stat(pid: int) -> list[int]:
    """The numbers of /proc/pid/stat from the fourth on, as proc(5) counts minus 3; only 0 when it is gone."""
    return [0, *map(int, stat_fields(f"/proc/{pid}")[1:])]


def _resident(numbers: list[int]) -> int:
    """Bytes that a process holds, of which it may share some; 0 when it is gone."""
    return numbers[21] * PAGE if len(numbers) > 1 else 0


def _share(pid: int) -> int:
    """Bytes of a process, shared pages divided among those that share them; all of them where that is hidden."""
    try:
        with open(f"/proc/{pid}/smaps_rollup", "rb") as file:
            found = [int(line.split()[1]) << 10 for line in file if line.startswith(b"Pss:")]
    except (FileNotFoundError, ProcessLookupError, PermissionError):
        found = []
    if found:
        return found[0]
    # It may have ended since, and holds nothing then.
    return _resident(_stat(pid))
