"""Seconds per phase: a stopwatch with names. It knows no file and changes no result.

A part of the program marks its work with `phase`. The time goes to the timer that runs, and nowhere when none does,
so parts need not hand a timer to each other.
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
    """On the clock."""
    cpu: float = 0.0
    """Of this process, all its threads; child processes are not counted."""

    def __add__(self, other: Spent) -> Spent:
        return Spent(self.wall + other.wall, self.cpu + other.cpu)

    def __sub__(self, other: Spent) -> Spent:
        return Spent(self.wall - other.wall, self.cpu - other.cpu)


@dataclass(frozen=True, slots=True)
class Lap:
    """What was measured between two calls of `Timer.lap`."""

    total: Spent
    phases: dict[str, Spent] = field(default_factory=dict)
    """By name; a phase inside another one is `outer/inner`, and is part of `outer`."""
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
        """Inside the block, `phase` and `count` of this thread add to this timer."""
        before = _RUNNING.set(self)
        try:
            yield
        finally:
            _RUNNING.reset(before)

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Add the block's time to `name`, below the phases that are open. A block that raises counts too."""
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
    """`Timer.phase` of the timer that runs; nothing is measured when none does."""
    timer = _RUNNING.get()
    if timer is None:
        yield
        return
    with timer.phase(name):
        yield


def count(name: str, amount: int) -> None:
    """`Timer.count` of the timer that runs."""
    timer = _RUNNING.get()
    if timer is not None:
        timer.count(name, amount)
