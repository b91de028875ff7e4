"""Which files every user of a machine can read: a repository may lie below a folder that is its owner's alone."""

from __future__ import annotations

from pathlib import Path


def readable_by_all(path: Path) -> bool:
    """Whether every user can read a file, or enter and list a folder; the folders above it can be entered."""
    needed = 0o005 if path.is_dir() else 0o004
    return path.stat().st_mode & needed == needed and all(p.stat().st_mode & 0o001 for p in path.parents)
