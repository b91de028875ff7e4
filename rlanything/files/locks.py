"""Locks on files: one process at a time may write. The kernel releases a lock when its holder dies, however it dies.

The text in the file only names the holder. So nothing has to be cleaned up after a killed process.
"""

from __future__ import annotations

import fcntl
import os
import socket
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from io import FileIO
from pathlib import Path

from rlanything.core.errors import ConfigError
from rlanything.files import atomic
from rlanything.files.project import PRIVATE

PATIENCE = 1.0
"""Seconds to wait for a lock: the kernel needs a moment to end a process that was just killed."""


@contextmanager
def stage(root: Path, command: str, *writes: Path, apart: Sequence[str] = ()) -> Iterator[None]:
    """Run `command` alone in the project. Raises `ConfigError` when a folder is read-only or the command runs already.

    Args:
        root: the project.
        command: the words after `rlanything`.
        writes: folders it will write to, beside the project's own `.rla`.
        apart: commands that must not run meanwhile, because one writes what the other reads; `train*` means all that
            begin so. Both must say so: each takes its own lock before it looks for the other's, so one sees the other.
    """
    locks = root / PRIVATE / "locks"
    for folder in (locks, *writes):
        atomic.check_writable(folder)
    atomic.make(locks)
    with held(locks / _name(command), f"{root}: `rlanything {command}` runs here already"):
        for path in {path for pattern in apart for path in locks.glob(_name(pattern))} - {
            locks / _name(command)
        }:
            _check_free(
                path, f"{root}: `rlanything {command}` cannot run beside the command that holds {path}"
            )
        yield


def _name(command: str) -> str:
    """The name of a command's lock file."""
    return command.replace(" ", "-")


def _check_free(path: Path, refusal: str) -> None:
    """Raise `ConfigError` when another process holds the lock file `path`."""
    with path.open("rb", buffering=0) as file:
        _take(file, path, refusal, PATIENCE, fcntl.LOCK_SH)


@contextmanager
def held(path: Path, refusal: str, patience: float = PATIENCE) -> Iterator[None]:
    """Hold the lock file `path`. Raises `ConfigError` with `refusal` and the holder when another process keeps it."""
    with path.open("a+b", buffering=0) as file:  # unbuffered: on a full disk, closing would fail once more
        _take(file, path, refusal, patience)
        with atomic.system_errors(path):
            _sign(file, f"pid {os.getpid()} on {socket.gethostname()}")
        try:
            yield
        finally:
            _sign(file, "")


def _take(file: FileIO, path: Path, refusal: str, patience: float, how: int = fcntl.LOCK_EX) -> None:
    deadline = time.monotonic() + patience
    while True:
        try:
            fcntl.flock(file, how | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            if time.monotonic() > deadline:
                raise ConfigError(f"{refusal} ({_holder(file)}); wait for it or stop it") from None
        except OSError as error:
            raise ConfigError(
                f"{path}: its file system has no locks ({error.strerror}), so two runs could write at once; move the "
                "project to a local disk, or mount this one with locks"
            ) from None
        time.sleep(0.05)


def _holder(file: FileIO) -> str:
    file.seek(0)
    return file.read().decode().strip() or "unknown holder"


def _sign(file: FileIO, text: str) -> None:
    file.truncate(0)
    file.write(text.encode())
