"""Where a buffer's files are read from: the disk, or what a view puts in its place (a git revision, a live run)."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Protocol

from rlanything.files.reader import opened


class FileSystem(Protocol):
    """What reading a buffer needs of a file system."""

    def names(self, folder: Path) -> list[str]:
        """The names in a folder; none when there is no such folder."""
        ...

    def open(self, path: Path) -> BinaryIO:
        """A file's content. Raises `OSError` or `FileError`."""
        ...


@dataclass(frozen=True)
class Disk:
    """The files as they are now."""

    def names(self, folder: Path) -> list[str]:
        """The names in a folder; none when there is no such folder."""
        return os.listdir(folder) if folder.is_dir() else []

    def open(self, path: Path) -> BinaryIO:
        """A file's content. Raises `FileError` for one that is no regular file or too large."""
        return opened(path)


DISK = Disk()
