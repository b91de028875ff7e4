"""Worlds that work at the same time: the set-ups and the actions of a turn, each in a thread that waits for its world.

The loop says what it is about to ask (`Prepares`, `Prefetches`). What a world answers is kept until it is asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from weakref import WeakSet

from envs.computer.turns import paired
from envs.desktop.play.environment import DesktopEnvironment
from rlanything.core.types import Task


class Together:
    """The environments of one family in this process. start: makes one; most: worlds at a time."""

    def __init__(self, start: Callable[[], DesktopEnvironment], most: int) -> None:
        self._start, self._most = start, most
        self._environments: WeakSet[DesktopEnvironment] = WeakSet()
        self._ready: list[DesktopEnvironment] = []
        self._started = 0

    def environment(self) -> DesktopEnvironment:
        """An environment: those that were set up ahead of time first, in the order in which that was asked for."""
        made = self._ready.pop(0) if self._ready else self._start()
        self._started += 1
        made.order = self._started
        self._environments.add(made)
        return made

    def prepare(self, work: Sequence[tuple[Task, int]]) -> None:
        """Set up these tasks, with their seeds, all at the same time. What fails says so when it is asked for."""
        for unclaimed in self._ready:
            unclaimed.close()
        self._ready = [self._start() for _ in work]
        with ThreadPoolExecutor(self._most) as threads:  # leaving the block waits for all of them
            for made, (task, seed) in zip(self._ready, work, strict=True):
                made.begun = (task.task_id, seed), threads.submit(made.begin, task, seed)

    def advance(self, work: Sequence[tuple[Task, str]]) -> None:
        """Make the steps of a turn, all at the same time. What fails says so when it is asked for."""
        pairs = list(paired(self._running(), work))
        with ThreadPoolExecutor(self._most) as threads:
            for environment, action in pairs:
                environment.made = action, threads.submit(environment.act, action)

    def verdicts(self, environments: Sequence[DesktopEnvironment]) -> list[Future[bool]]:
        """The verdicts on these episodes, all at the same time. What fails says so when it is asked for."""
        with ThreadPoolExecutor(self._most) as threads:
            return [threads.submit(environment.verdict) for environment in environments]

    def _running(self) -> Iterator[tuple[str, DesktopEnvironment]]:
        for environment in sorted(self._environments, key=lambda one: one.order):
            if not environment.over:
                yield environment.task_id, environment
