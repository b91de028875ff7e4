"""Seconds per phase. Timing writes no file and changes no result.

A function marks its work with `phase`. The time is added to the running timer, or dropped when no timer runs. So no
function needs a timer as an argument.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field

Clock = Callable[[], float]
_RUNNING: ContextVar[Timer | None] = ContextVar("timer", default=None)


@dataclass(frozen=True, slots=True)
class Spent:
    """Seconds of one phase."""

    wall: float = 0.0
    """Wall-clock time."""
    cpu: float = 0.0
    """CPU time of this process with all its threads, without child processes."""

    def __add__(self, other: Spent) -> Spent:
        return Spent(self.wall + other.wall, self.cpu + other.cpu)

    def __sub__(self, other: Spent) -> Spent:
        return Spent(self.wall - other.wall, self.cpu - other.cpu)


@dataclass(frozen=True, slots=True)
class Lap:
    """What was measured between two calls of `Timer.lap`."""

    total: Spent
    phases: dict[str, Spent] = field(default_factory=dict)
    """By name. A phase inside another one is called `outer/inner`; its time is also part of `outer`."""
    counts: dict[str, int] = field(default_factory=dict)


class Timer:
    """Adds up phases and counts while it runs. `wall` and `cpu` are the clocks, in seconds."""

    def __init__(self, wall: Clock = time.perf_counter, cpu: Clock = time.process_time) -> None:
        self._wall = wall
        self._cpu = cpu
        self._open: list[str] = []
        self._phases: dict[str, Spent] = defaultdict(Spent)
        self._counts: dict[str, int] = defaultdict(int)
        self._start = self._now()

    @contextmanager
    def running(self) -> Iterator[None]:
        """Inside the block, the functions `phase` and `count` add to this timer in this thread."""
        before = _RUNNING.set(self)
        try:
            yield
        finally:
            _RUNNING.reset(before)

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Add the block's time to the phase `name`, inside the phases that are open.

        A block that raises is timed too.
        """
        self._open.append(name)
        place, start = "/".join(self._open), self._now()
        try:
            yield
        finally:
            self._phases[place] += self._now() - start
            self._open.pop()

    def count(self, name: str, amount: int) -> None:
        """Add `amount` to the count `name`."""
        self._counts[name] += amount

    def add(self, name: str, beside: Lap) -> None:
        """Add the phases of another timer, of work that was done at the same time, inside the phase `name`.

        Their CPU seconds hold those of this thread as well, because CPU time is counted for the whole process.
        """
        for place, spent in {"": beside.total, **beside.phases}.items():
            self._phases[f"{name}/{place}".rstrip("/")] += spent

    def lap(self) -> Lap:
        """Everything since the last lap, or since the timer was made. Raises `ValueError` inside a phase."""
        if self._open:
            raise ValueError(f"a lap ends between phases, not inside {'/'.join(self._open)}")
        now = self._now()
        lap = Lap(now - self._start, dict(self._phases), dict(self._counts))
        self._start = now
        self._phases.clear()
        self._counts.clear()
        return lap

    def _now(self) -> Spent:
        return Spent(self._wall(), self._cpu())


@contextmanager
def phase(name: str) -> Iterator[None]:
    """`Timer.phase` of the running timer; nothing is measured when no timer runs."""
    timer = _RUNNING.get()
    if timer is None:
        yield
        return
    with timer.phase(name):
        yield


def count(name: str, amount: int) -> None:
    """`Timer.count` of the running timer; does nothing when no timer runs."""
    timer = _RUNNING.get()
    if timer is not None:
        timer.count(name, amount)
