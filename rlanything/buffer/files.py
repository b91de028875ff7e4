"""Where the files of a buffer are read from: the disk, or (`revision.Revision`) a commit that is not checked out."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Protocol


class Files(Protocol):
    """What reading a run needs of a file system."""

    def names(self, folder: Path) -> list[str]:
        """What lies in a folder; nothing when there is no such folder."""
        ...

    def open(self, path: Path) -> BinaryIO:
        """A file's content. Raises `OSError`."""
        ...


@dataclass(frozen=True)
class Disk:
    """The files as they are now."""

    def names(self, folder: Path) -> list[str]:
        """What lies in a folder; nothing when there is no such folder."""
        return os.listdir(folder) if folder.is_dir() else []

    def open(self, path: Path) -> BinaryIO:
        """A file's content. Raises `OSError`."""
        return path.open("rb")


DISK = Disk()
