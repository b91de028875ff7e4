"""Files that grow by a line of JSON at a time, and the record of what made them.

Answers and scores are expensive, so each is on disk as soon as it is there. A kill may leave a part of the last line.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path

from envs.coding.formats.record import FormatError
from rlanything.core.types import Json
from rlanything.files import reader
from rlanything.files.records import write_json


def append(path: Path, row: Mapping[str, Json]) -> None:
    """Add a line and close the file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps(row) + "\n")


def cut_unfinished_line(path: Path) -> None:
    """Remove a last line that a kill left unfinished."""
    if path.is_file():
        data = path.read_bytes()
        if not data.endswith(b"\n"):
            os.truncate(path, data.rfind(b"\n") + 1)


def read_object(path: Path) -> dict[str, Json]:
    """The JSON object in a file. Raises `FormatError` for anything else."""
    try:
        return reader.read_object(path)
    except reader.FileError as error:
        raise FormatError(f"{error}; delete it and run again what wrote it") from None


def changed_since(path: Path, made: Mapping[str, Json]) -> str:
    """The names of what differs between `made` and the record at `path`, '' for nothing.

    Where there is no record, `made` is written.
    """
    if not path.is_file():
        write_json(path, dict(made))
        return ""
    before = read_object(path)
    return ", ".join(sorted(key for key in {*before, *made} if before.get(key) != made.get(key)))
