"""Hashes of files, of folders, and of the code that a stage runs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from rlanything.core.ids import content_id
from rlanything.files.manifest import sha256
from rlanything.runs.imports import code_files, targets


def code_hashes(entry: str, config: Mapping[str, Any]) -> dict[str, str]:
    """sha256 of every file of code that a module needs, and that the classes need which `config` names.

    The keys are paths from the project's root. `config` holds only sections that the module's work depends on.
    """
    files = code_files([entry, *targets(config)])
    return {name: sha256(path) for name, path in files.items()}


def file_hashes(root: Path, files: Iterable[Path]) -> dict[str, str]:
    """sha256 of files, by their path from `root`."""
    return {path.relative_to(root).as_posix(): sha256(path) for path in sorted(files)}


def tree_hash(folder: Path) -> str:
    """One hash over the names and contents of everything in a folder."""
    return content_id(file_hashes(folder, (p for p in folder.rglob("*") if p.is_file())))
