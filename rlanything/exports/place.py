"""Where an export goes: a folder that appears whole or not at all, and that replaces only what an export wrote.

The hidden file `.rlanything-export` lists the files of the folder with their hashes. A folder is replaced when it is
empty, or when it has exactly these files, unchanged.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rlanything.exports.texts import json_text
from rlanything.files import outputs
from rlanything.files.hashes import sha256
from rlanything.files.outputs import Output
from rlanything.files.reader import FileError, read_object

RECORD = ".rlanything-export"


def free(place: Path) -> Output:
    """The place of an export. Raises `ConfigError` unless the folder can be written, or replaced."""
    return outputs.output(place, _problem)


@contextmanager
def whole(output: Output) -> Iterator[Path]:
    """An empty folder to write an export into; it becomes the output when the block ends well. Raises `OSError`."""
    with output.folder() as folder:
        yield folder
        listed = {name: sha256(folder / name) for name in _files(folder)}
        (folder / RECORD).write_text(json_text({"files": listed}) + "\n", encoding="ascii")


def _problem(place: Path) -> str:
    if not place.is_dir():
        return "is a file; an export is a folder"
    why = _foreign(place)
    return f"is not replaced: {why}; name another folder" if why else ""


def _foreign(place: Path) -> str:
    """Why a folder is not an export as it was written; '' where it is, or is empty."""
    if any(path.is_symlink() for path in place.rglob("*")):
        return "it has a link"
    there = _files(place)
    if not there:
        return ""
    if RECORD not in there:
        return "it is no export of `rlanything rollouts export`"
    try:
        listed = read_object(place / RECORD).get("files")
    except FileError as error:
        return str(error)
    if not isinstance(listed, dict) or {*listed, RECORD} != set(there):
        return "it has other files than the export that was written there"
    for name, kept in listed.items():
        if sha256(place / name) != kept:
            return f"{name} was changed after it was written"
    return ""


def _files(folder: Path) -> list[str]:
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if not path.is_dir())
