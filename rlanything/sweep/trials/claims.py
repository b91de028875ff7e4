"""Which worker runs which trial, on any number of machines that share a folder.

A claim is a lock on a file, held by the worker and by the child process that does the work. The kernel releases it
when both have ended, however they ended. On a network file system the server releases it when the machine is gone.
"""

from __future__ import annotations

import fcntl
from pathlib import Path
from typing import BinaryIO


class Claims:
    """The claims in one folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.mine: dict[str, BinaryIO] = {}
        folder.mkdir(parents=True, exist_ok=True)

    def take(self, name: str) -> bool:
        """Claim `name`; False while it is claimed, by this worker or by another one."""
        if name in self.mine:
            return False
        file = (self.folder / f"{name}.lock").open("ab")
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.close()
            return False
        self.mine[name] = file
        return True

    def release(self, name: str) -> None:
        """Give up the claim; does nothing for one that is not this worker's."""
        file = self.mine.pop(name, None)
        if file is not None:
            fcntl.flock(file, fcntl.LOCK_UN)
            file.close()

    def is_taken(self, name: str) -> bool:
        """Whether a worker has it. Call it with the study's lock held: it takes the claim for an instant."""
        if name in self.mine:
            return True
        free = self.take(name)
        self.release(name)
        return not free

    def descriptors(self, *names: str) -> list[int]:
        """File descriptors of those claims that this worker has; a child that inherits one holds it as well."""
        return [self.mine[name].fileno() for name in names if name in self.mine]
