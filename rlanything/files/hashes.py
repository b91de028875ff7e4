"""Hashes of files and folders, and which files count: the one place that says so."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from functools import lru_cache
from pathlib import Path

from rlanything.core.ids import content_id

NO_MATTER = (".md", ".pyc")
"""Ends of the names of files that no result depends on: written for people, or made from others."""


def files_in(folder: Path) -> Iterator[Path]:
    """Every file below `folder` that a result may depend on; .dvcignore says the same to DVC."""
    return (p for p in folder.rglob("*") if p.is_file() and counts(p.relative_to(folder)))


def counts(path: Path) -> bool:
    """Whether a result may depend on a file. `path` is relative, since hidden folders above it mean nothing."""
    hidden = any(part.startswith(".") or part == "__pycache__" for part in path.parts)
    return not hidden and path.suffix not in NO_MATTER


def file_hashes(root: Path, files: Iterable[Path]) -> dict[str, str]:
    """sha256 of files, by their path from `root`, as `digest` has them."""
    return {path.relative_to(root).as_posix(): digest(path) for path in sorted(files)}


def tree_hash(folder: Path) -> str:
    """One hash over the names and contents of everything in a folder."""
    return content_id(file_hashes(folder, (p for p in folder.rglob("*") if p.is_file())))


def digest(path: Path) -> str:
    """sha256 of a file. One whose size and times are the same as before is not read again."""
    state = path.stat()
    return _digest(path, state.st_ino, state.st_size, state.st_mtime_ns, state.st_ctime_ns)


def forget() -> None:
    """Let `digest` read every file again. A file that was exchanged on a disk without honest times is then found."""
    _digest.cache_clear()


@lru_cache(maxsize=1 << 14)
def _digest(path: Path, *_state: int) -> str:
    return sha256(path)


def sha256(path: Path) -> str:
    """sha256 of a file, as 64 hex digits."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
