"""The study's journal file, which survives a full disk and a power loss.

Optuna appends one line for each change, and takes half a line at the end for one that is still being written. Left by
a write that failed, it would be glued to the next one. So whoever holds the journal's lock cuts it off.
"""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path
from typing import Any

from optuna.storages.journal import JournalFileBackend, JournalFileSymlinkLock

from rlanything.config import ConfigError

BLOCK = 4096
"""Bytes that are read at once from the end, on the way to the last whole line."""


class Journal(JournalFileBackend):
    """Optuna's journal file; what cannot be written or read is said with the file's name."""

    def __init__(self, path: Path) -> None:
        """Open the file, or make it; half a line at its end goes."""
        self.path = path
        lock = _MendingLock(path)
        super().__init__(str(path), lock_obj=lock)
        if _whole(path) < path.stat().st_size:
            lock.acquire()
            lock.release()

    def append_logs(self, logs: list[dict[str, Any]]) -> None:
        """Part of Optuna's protocol. Raises `OSError` with the file's name; the file is then as before."""
        try:
            super().append_logs(logs)
        except OSError as error:
            error.filename = error.filename or str(self.path)
            raise

    def read_logs(self, log_number_from: int) -> Generator[dict[str, Any], None, None]:
        """Part of Optuna's protocol. Raises `ConfigError` for a line that is no record."""
        number = log_number_from
        try:
            for record in super().read_logs(log_number_from):
                number += 1
                yield record
        except ValueError as error:
            raise ConfigError(
                f"{self.path}:{number + 1}: no record of a study ({error}); put back a copy of the file, or remove its "
                "folder to begin the sweep again"
            ) from None


class _MendingLock(JournalFileSymlinkLock):
    """Optuna's lock of a journal. Half a line at the end is cut off by whoever takes or gives up the lock.

    The former is for what a power loss left, the latter for an append that has just failed.
    """

    def __init__(self, path: Path) -> None:
        super().__init__(str(path))
        self.path = path
        self.mine = False

    def acquire(self) -> bool:
        """Part of Optuna's protocol. Raises `OSError`, e.g. on a full disk; the lock is free then."""
        super().acquire()
        try:
            _mend(self.path)
        except OSError:
            super().release()
            raise
        self.mine = True
        return True

    def release(self) -> None:
        """Part of Optuna's protocol; `acquire` calls it too, to break the lock of a killed process."""
        try:
            if self.mine:
                _mend(self.path)
        finally:
            self.mine = False
            super().release()


def _mend(path: Path) -> None:
    """Cut off what stands after the last line end; for whoever holds the lock."""
    whole = _whole(path)
    if whole < path.stat().st_size:
        with path.open("r+b") as file:
            file.truncate(whole)


def _whole(path: Path) -> int:
    """The file's size up to its last line end, in bytes."""
    with path.open("rb") as file:
        end = file.seek(0, 2)
        while end > 0:
            begin = max(0, end - BLOCK)
            file.seek(begin)
            found = file.read(end - begin).rfind(b"\n")
            if found >= 0:
                return begin + found + 1
            end = begin
    return 0
