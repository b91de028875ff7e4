"""Files that a kill at any moment leaves whole, or whole but for a last line."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path

from envs.coding.formats.record import FormatError
from rlanything.core.types import Json


def write_whole(path: Path, text: str) -> None:
    """Replace a file in one step; its folder is made."""
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(f"{path.name}.tmp")
    beside.write_text(text, encoding="utf-8")
    os.replace(beside, path)


def write_record(path: Path, made: Mapping[str, Json]) -> None:
    """Write what made the files beside it."""
    write_whole(path, json.dumps(made, indent=2, sort_keys=True) + "\n")


def read_record(path: Path) -> dict[str, Json]:
    """What `write_record` wrote. Raises `FormatError` for anything else."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise FormatError(f"{path}: not JSON ({error}); delete it and run again what wrote it") from None
    if not isinstance(found, dict):
        raise FormatError(f"{path}: no JSON object; delete it and run again what wrote it")
    return found


def differences(before: Mapping[str, Json], now: Mapping[str, Json]) -> str:
    """The names of what differs, for a message; '' where nothing does."""
    return ", ".join(sorted(key for key in {*before, *now} if before.get(key) != now.get(key)))


def append(path: Path, row: Mapping[str, Json]) -> None:
    """Add a line at once, so that what is done is kept when the work stops."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps(row) + "\n")


def mend(path: Path) -> None:
    """Cut off a last line that was not finished when the work was killed."""
    if path.is_file():
        data = path.read_bytes()
        if not data.endswith(b"\n"):
            os.truncate(path, data.rfind(b"\n") + 1)
