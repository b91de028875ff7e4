"""How long a test was ready to run and had no CPU. That time does not count against the program."""

import os
import time
from typing import NamedTuple

TICK_S = 1 / os.sysconf("SC_CLK_TCK")
NICE, START, POLICY = 16, 19, 38
"""The places of nice value, start time and scheduling policy among the `stat_fields`."""
_buffer = bytearray(4096)


class Thread(NamedTuple):
    """One thread, as it was last seen."""

    counters: bytes = b"0 0 0"
    """Nanoseconds of CPU time, nanoseconds in the queue, number of turns, as the kernel prints them."""
    ready: bool = False
    """Whether it runs or could run."""
    queued: float = 0.0
    """Seconds since it was seen in the queue, if it has been there ever since."""
    waited: float = 0.0
    """Seconds that it waited for a CPU so far. Never falls."""

    def booked(self, field: int) -> float:
        """Seconds of a counter: 0 for CPU time, 1 for the queue."""
        return int(self.counters.split()[field]) / 1e9


class RunQueue:
    """Adds up how long the threads of a test waited for a CPU. Of threads that wait at the same time, one counts.

    The kernel counts a wait when it is over. A wait that goes on is seen as a thread that is ready and whose counters
    have not changed since the last look. A thread that is new and ready is taken to have waited all its life but for
    the time that it ran: rather too much than too little, as no program must be called late because a machine is busy.

    Threads that have ended leave no counters. Where one of them was ready, or one is that is new, the wait of those in
    between is estimated: the share of time that the threads of the test have waited so far. The share is small where
    CPUs are free, also for a program that makes threads without end.
    """

    def __init__(self) -> None:
        self.waited = 0.0
        """Seconds."""
        self._threads: dict[str, Thread] = {}
        self._start = self._looked = time.monotonic()
        self._ran = self._queued = 0.0  # sums over all threads that were seen

    def look(self, pids: list[int]) -> None:
        """Look at the threads of these processes. Call it often: a wait is seen by the next look at the earliest."""
        now = time.monotonic()
        passed = now - self._looked
        seen = {name: self._seen(name, passed) for pid in pids for name in threads(pid)}
        most = max((0.0, *(self._add(name, thread) for name, thread in seen.items())))
        come_or_gone = (
            thread for name, thread in (seen | self._threads).items() if name in seen.keys() ^ self._threads
        )
        if any(thread.ready for thread in come_or_gone):
            queued = max(0.0, self._queued)
            most = max(most, passed * queued / (queued + self._ran or 1.0))
        self.waited = min(self.waited + most, now - self._start)
        self._threads, self._looked = seen, now

    def _seen(self, name: str, passed: float) -> Thread:
        before, counters = self._threads.get(name), _read(f"{name}/schedstat")
        ready, age = _state(name)
        if not counters:
            return before or Thread()
        found = Thread(counters, ready)
        if before is None:
            queued = min(age, time.monotonic() - self._start) - found.booked(0) - found.booked(1)
        else:
            queued = before.queued + passed if counters == before.counters else 0.0
        found = found._replace(queued=queued if ready else 0.0)
        waited = found.booked(1) + found.queued
        return found._replace(waited=waited if before is None else max(before.waited, waited))

    def _add(self, name: str, thread: Thread) -> float:
        """Add a thread to the sums; the seconds that it waited since the last look."""
        before = self._threads.get(name, Thread())
        self._ran += thread.booked(0) - before.booked(0)
        self._queued += thread.waited - before.waited
        return thread.waited - before.waited


def threads(pid: int) -> list[str]:
    """The folders in /proc of a process's threads; none when it is gone."""
    try:
        return [f"/proc/{pid}/task/{thread}" for thread in os.listdir(f"/proc/{pid}/task")]
    except (FileNotFoundError, ProcessLookupError):
        return []


def descendants(pid: int) -> list[int]:
    """All processes below one: its children, theirs, and so on."""
    found = [pid]
    for process in found:
        found += [int(child) for thread in threads(process) for child in _read(f"{thread}/children").split()]
    return found[1:]


def steps_back(pid: int) -> bool:
    """Whether a process chose to wait: a thread, or the autogroup of its session, has another priority than at first.

    A thread begins with the priority of this process, an autogroup with this one's or, of a new session, with 0. The
    filter refuses to change the first, and `bwrap` the second. A container may be without our filter, and its /proc is
    writable.
    """
    if _autogroup(str(pid)) not in ([], [b"0"], OUR_AUTOGROUP):
        return True
    return any(found and found != OUR_PRIORITY for found in map(_priority, threads(pid)))


def _autogroup(pid: str) -> list[bytes]:
    """The value of its autogroup; [] when it is gone, or the kernel has none."""
    return _read(f"/proc/{pid}/autogroup").split()[-1:]


def _priority(thread: str) -> list[bytes]:
    """Nice value and policy; [] when it is gone."""
    return stat_fields(thread)[NICE : POLICY + 1 : POLICY - NICE]


def stat_fields(folder: str) -> list[bytes]:
    """The fields of a stat file after the second, the name; [b""] when it is gone.

    A program chooses its name, up to 15 bytes. It is wiped here, as no later test may find it.
    """
    try:
        file = os.open(f"{folder}/stat", os.O_RDONLY)
    except FileNotFoundError:
        return [b""]
    try:
        size = os.readv(file, [_buffer])
        return bytes(_buffer[_buffer.rfind(b")", 0, size) + 1 : size]).split() or [b""]
    except ProcessLookupError:
        return [b""]
    finally:
        _buffer[:] = bytes(len(_buffer))
        os.close(file)


def _state(thread: str) -> tuple[bool, float]:
    """Whether a thread runs or could run, and seconds since it started, half a tick too many or too few."""
    fields = stat_fields(thread)
    if len(fields) <= START:
        return False, 0.0
    return fields[0] == b"R", time.clock_gettime(time.CLOCK_BOOTTIME) - (int(fields[START]) + 0.5) * TICK_S


def _read(path: str) -> bytes:
    """A file of /proc; empty when what it tells of is gone."""
    try:
        with open(path, "rb") as file:
            return file.read()
    except (FileNotFoundError, ProcessLookupError):
        return b""


OUR_AUTOGROUP, OUR_PRIORITY = _autogroup("self"), _priority("/proc/self")
"""As they were before any program ran: one that is refused nothing could change them."""
