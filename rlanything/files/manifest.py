"""Folders that say what is in them: manifest.json holds the sha256 of every file and of the folder's predecessor.

The predecessor counts with its manifest, and so with every file in every folder before it. A folder that was changed,
exchanged, left out or put in between is found.
"""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import Any

from rlanything.core.ids import canonical_json
from rlanything.files.hashes import sha256
from rlanything.files.reader import FileError, read_object

NAME = "manifest.json"


def seal(folder: Path, before: Path | None) -> None:
    """Write the manifest of a folder without folders in it, which comes after `before`."""
    (folder / NAME).write_text(canonical_json(_content(folder, before)) + "\n")


def damage(folder: Path, before: Path | None, besides: Collection[str] = ()) -> str | None:
    """What is not as it was sealed, as a sentence that names the file; None when everything is.

    besides: names of files that may be gone since. They are not looked at.
    """
    try:
        sealed = read_object(folder / NAME)
    except FileError as error:
        return f"{error}; it cannot be read"
    files, previous = sealed.get("files"), sealed.get("before")
    if not isinstance(files, dict):
        return f"{folder / NAME}: it names no files"
    if previous != _link(before):
        return f"{folder / NAME}: it does not follow {before or 'the start'}"
    for name in sorted({*files, *_names(folder)} - {*besides}):
        if name not in files:
            return f"{folder / name}: it was not there when the folder was written"
        if not (folder / name).is_file():
            return f"{folder / name}: it is gone"
        if sha256(folder / name) != files[name]:
            return f"{folder / name}: its content is not what was written"
    return None


def _content(folder: Path, before: Path | None) -> dict[str, Any]:
    return {"before": _link(before), "files": {name: sha256(folder / name) for name in _names(folder)}}


def _link(before: Path | None) -> str | None:
    return None if before is None else sha256(before / NAME)


def _names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir() if path.name != NAME)
