"""Which process holds a lock, seen from outside. The kernel frees a lock when its holder dies, so it is never stale."""

from __future__ import annotations

import fcntl
import re
import socket
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from rlanything.files.project import PRIVATE
from rlanything.files.reader import FileError, opened

LOCKS = Path(PRIVATE, "locks")
"""Where the commands of a project have their locks."""
_SIGNED = re.compile(rb"pid (\d{1,9}) on ([\x21-\x7e]{1,200})")
_MOST = 300


@dataclass(frozen=True)
class Holder:
    """A process that holds a lock. pid: 0 where the file does not say. since: when it took it, seconds of the epoch."""

    pid: int
    host: str
    since: float

    @property
    def here(self) -> bool:
        """Whether it runs on this machine, so that its use of it can be seen."""
        return self.pid > 0 and self.host == socket.gethostname()


def lock_of(root: Path, words: str) -> Path:
    """The lock of the command `rlanything <words>` in a project."""
    return root / LOCKS / words.replace(" ", "-")


def holder(path: Path) -> Holder | None:
    """Who holds a lock file (`files/locks.py`); None while nobody does, or where that cannot be seen.

    The lock is shared for an instant. Whoever takes it meanwhile tries again for a second at least.
    """
    with suppress(FileError, OSError), opened(path) as file:
        try:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return _signed(path, file.read(_MOST))
    return None


def _signed(path: Path, text: bytes) -> Holder:
    found = _SIGNED.match(text)
    since = path.stat().st_mtime
    return Holder(int(found[1]), found[2].decode(), since) if found else Holder(0, "", since)
