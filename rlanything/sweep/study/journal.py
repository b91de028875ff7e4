"""The study's journal file, which survives a full disk and a power loss.

Optuna appends one line for each change. It ignores an incomplete last line, as one that is still being written. If a
failed write left it there, the next line would be appended to it, and both would be lost. So the holder of the
journal's lock cuts an incomplete last line off.
"""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path
from typing import Any

from optuna.storages.journal import JournalFileBackend, JournalFileOpenLock

from rlanything.core.errors import ConfigError

BLOCK = 4096
"""Bytes read at once while searching the last line end from the end of the file."""


class Journal(JournalFileBackend):
    """Optuna's journal file, with errors that name the file."""

    def __init__(self, path: Path) -> None:
        """Open the file, or make it; an incomplete last line is removed."""
        self.path = path
        lock = _RepairingLock(path)
        super().__init__(str(path), lock_obj=lock)
        if _complete_bytes(path) < path.stat().st_size:
            lock.acquire()
            lock.release()

    def append_logs(self, logs: list[dict[str, Any]]) -> None:
        """Part of Optuna's protocol. Raises `OSError` with the file's name; the file is unchanged then."""
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


class _RepairingLock(JournalFileOpenLock):
    """Optuna's lock of a journal, which removes an incomplete last line when it is taken and when it is released.

    The first removes what a power loss left, the second what a failed append left a moment ago. The lock is a file.
    Optuna's default, a link to the journal, leads nowhere once the folder has another path, and then nobody breaks it.
    """

    def __init__(self, path: Path) -> None:
        super().__init__(str(path))
        self.path = path
        self.mine = False

    def acquire(self) -> bool:
        """Part of Optuna's protocol. Raises `OSError`, e.g. on a full disk; the lock is free then."""
        super().acquire()
        try:
            _repair(self.path)
        except OSError:
            super().release()
            raise
        self.mine = True
        return True

    def release(self) -> None:
        """Part of Optuna's protocol; `acquire` calls it too, to break the lock of a killed process."""
        try:
            if self.mine:
                _repair(self.path)
        finally:
            self.mine = False
            super().release()


def _repair(path: Path) -> None:
    """Cut off what follows the last line end. The caller holds the lock."""
    whole = _complete_bytes(path)
    if whole < path.stat().st_size:
        with path.open("r+b") as file:
            file.truncate(whole)


def _complete_bytes(path: Path) -> int:
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
