"""Worlds of this process: an episode takes one and gives it back. One that nobody may have again is ended."""

from __future__ import annotations

import atexit
import contextlib
import os
import threading
from collections.abc import Callable

from envs.desktop.bridge.answers import WorldEnded, WorldError, WorldTimeout
from envs.desktop.bridge.world import Settings, World
from rlanything.core.errors import MachineError


class Pool:
    """At most `most` worlds at a time. check: raises where a world that was started is not the one that is meant.

    reuse: whether a world that had an episode may have another one. Where it may not, it is ended with its episode.
    """

    def __init__(
        self,
        settings: Settings,
        most: int,
        check: Callable[[World], None] = lambda _: None,
        *,
        reuse: bool = True,
    ) -> None:
        self.settings, self.most, self.reuse = settings, most, reuse
        self._check = check
        self._free: list[World] = []
        self._taken = 0
        self._lock = threading.Lock()
        self._process = os.getpid()
        self.starts = 0
        """How many worlds were started."""
        self._tried = False  # by `ready`; a world that was only asked what it is says nothing of the next one
        atexit.register(self.close)

    def ready(self) -> None:
        """Start the first world, so that a command that cannot work is known before any episode.

        Raises `MachineError`, also for one that ends before it says hello. That a world fails in another way is left to
        the episode that takes it.
        """
        if self._tried:
            return
        try:
            self.give_back(self.take())
        except WorldEnded as error:
            raise MachineError(f"no world can be started: {error}") from None
        except (WorldError, WorldTimeout):
            pass
        self._tried = True

    def take(self, *, fresh: bool = False) -> World:
        """A world that no other episode has. Raises as `World` does, and `WorldError` where all of them are taken.

        fresh: one that no episode had; a world that waits is ended for it where there may be no more.
        """
        spare = None
        with self._lock:
            if self._process != os.getpid():  # forked: the worlds are those of the other process
                self._free, self._taken, self._process = [], 0, os.getpid()
            if self._free and not fresh:
                self._taken += 1
                return self._free.pop()
            if self._taken >= self.most:
                raise WorldError(f"all {self.most} worlds of this process are taken (env.worlds)")
            if self._taken + len(self._free) >= self.most:
                spare = self._free.pop()
            self._taken += 1
            self.starts += 1
        try:
            if spare is not None:
                spare.close()
            return self._start()
        except BaseException:
            with self._lock:
                self._taken -= 1
            raise

    def give_back(self, world: World) -> None:
        """The episode of this world is over. Where nobody may have it again, it ends before its place is free."""
        kept = not world.broken and (self.reuse or not world.used)
        try:
            if not kept:
                world.close()
        finally:
            with self._lock:
                self._taken -= 1
                if kept:
                    self._free.append(world)

    def close(self) -> None:
        """End the worlds that no episode has."""
        if self._process != os.getpid():
            return
        with self._lock:
            free, self._free = self._free, []
        for world in free:
            with contextlib.suppress(Exception):  # the process ends; a world ends with its input
                world.close()

    def _start(self) -> World:
        world = World(self.settings)
        try:
            self._check(world)
        except BaseException:
            world.close()
            raise
        return world
