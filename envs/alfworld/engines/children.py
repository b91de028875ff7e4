"""Child processes of the real engine. They wait for the next episode, because a new one takes two seconds to start."""

from __future__ import annotations

import os
import subprocess
import tempfile
import weakref
from collections.abc import Mapping, Sequence
from typing import IO

MOST_GAMES = 200
"""Games that one child plays. Its caches grow by a quarter of a megabyte with each."""


class Child:
    """A running child process. games: how many it has loaded."""

    def __init__(self, command: Sequence[str], env: Mapping[str, str]) -> None:
        self.games = 0
        self._errors: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 - it lives as long as the child
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(
            command, stdin=pipe, stdout=pipe, stderr=self._errors, bufsize=0, env=env
        )

    def last_error(self) -> str:
        """The last line that it wrote to its standard error since `forget`, or ''."""
        self._errors.seek(0)
        written = self._errors.read().decode(errors="replace").strip().splitlines()
        return written[-1] if written else ""

    def forget(self) -> None:
        """Empty its standard error. Parent and child share the place in that file."""
        self._errors.seek(0)
        self._errors.truncate()

    def end(self) -> None:
        """Kill it and free what it holds."""
        self.process.kill()
        self.process.wait()
        for stream in (self.process.stdin, self.process.stdout, self._errors):
            if stream is not None:
                stream.close()


class Idle:
    """Children that no episode has. They end with this object, and with the process."""

    def __init__(self) -> None:
        self._children: list[Child] = []
        self._process = os.getpid()
        weakref.finalize(self, _end, self._children, self._process)

    def take(self) -> Child | None:
        """One that still runs, or None."""
        while self._children and self._process == os.getpid():  # forked: they are those of the other process
            child = self._children.pop()
            if child.process.poll() is None:
                return child
            child.end()
        return None

    def give(self, child: Child) -> None:
        """Take over a child that owes no answer. One that has played enough games ends."""
        if child.games >= MOST_GAMES or self._process != os.getpid():
            child.end()
            return
        child.forget()
        self._children.append(child)


def _end(children: list[Child], process: int) -> None:
    """End them all, in the process that started them."""
    while children and process == os.getpid():
        children.pop().end()
