"""How long a test was ready to run and had no CPU. That time does not count against the program."""

import os
import time
from typing import NamedTuple


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
    have not changed since the last look. A thread that was ready and has ended leaves no counters. Its last wait is
    estimated: the share of time that the threads of the test have waited so far. The share is small where CPUs are
    free, also for a program that makes threads without end.
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
        most = max((self._add(name, thread) for name, thread in seen.items()), default=0.0)
        if any(thread.ready and name not in seen for name, thread in self._threads.items()):
            most = max(most, passed * self._queued / (self._queued + self._ran or 1.0))
        self.waited = min(self.waited + most, now - self._start)
        self._threads, self._looked = seen, now

    def _seen(self, name: str, passed: float) -> Thread:
        before, counters = self._threads.get(name, Thread()), _read(f"{name}/schedstat")
        ready = _state(name) == b"R"
        if not counters:
            return before
        queued = before.queued + passed if ready and counters == before.counters else 0.0
        found = Thread(counters, ready, queued)
        return found._replace(waited=max(before.waited, found.booked(1) + queued))

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


def _state(thread: str) -> bytes:
    """The letter that says what a thread does: R when it runs or could run."""
    return _read(f"{thread}/stat").rpartition(b")")[2][1:2]


def _read(path: str) -> bytes:
    """A file of /proc; empty when what it tells of is gone."""
    try:
        with open(path, "rb") as file:
            return file.read()
    except (FileNotFoundError, ProcessLookupError):
        return b""
