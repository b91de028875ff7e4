"""Kill a process at the n-th call that changes the disk, for every n: between two such calls a kill changes nothing.

The calls are counted by the interpreter's profiler, so that what runs is what always runs.
"""

from __future__ import annotations

import io
import os
import signal
import sys
import traceback
from collections.abc import Callable
from typing import Any

CALLS = {
    io.open, os.fsync, os.link, os.mkdir, os.remove, os.rename, os.replace, os.rmdir, os.sendfile, os.symlink,
    os.truncate, os.unlink, os.write,
}  # fmt: skip
FILES = (io.FileIO, io.BufferedWriter, io.BufferedRandom, io.TextIOWrapper)
METHODS = {"__exit__", "close", "flush", "truncate", "write", "writelines"}
WRITERS = ("safetensors", "tokenizers")
"""Packages that write files with code of their own."""


def changes_disk(function: Any) -> bool:
    """Whether a built-in function may change what is on disk."""
    owner = getattr(function, "__self__", None)
    if isinstance(owner, FILES):
        return function.__name__ in METHODS
    module = getattr(function, "__module__", None) or type(owner).__module__ or ""
    return (isinstance(module, str) and module.startswith(WRITERS)) or function in CALLS


class at_change:  # noqa: N801
    """In this block, call `before(n)` before the n-th change of the disk, from 0."""

    def __init__(self, before: Callable[[int], None]) -> None:
        self.before = before
        self.count = 0

    def __enter__(self) -> at_change:
        sys.setprofile(self._event)
        return self

    def __exit__(self, *args: object) -> None:
        sys.setprofile(None)

    def _event(self, frame: object, event: str, argument: object) -> None:
        if event == "c_call" and changes_disk(argument):
            self.before(self.count)
            self.count += 1


def killed_at(n: int, work: Callable[[], None]) -> bool:
    """Do `work` in a process that is killed at its n-th change of the disk; whether it lived that long."""

    def die(k: int) -> None:
        if k == n:
            os.kill(os.getpid(), signal.SIGKILL)

    def counted() -> None:
        with at_change(die):
            work()

    return in_child(counted)


def in_child(work: Callable[[], None]) -> bool:
    """Do `work` in a forked process; True when it was killed, False when it came to its end."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            work()
            code = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(code)
    status = os.waitpid(child, 0)[1]
    if os.WIFSIGNALED(status):
        assert os.WTERMSIG(status) == signal.SIGKILL
        return True
    assert os.waitstatus_to_exitcode(status) == 0, "it failed by itself"
    return False
