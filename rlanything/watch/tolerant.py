"""Reading files while others write them: what cannot be read now is left out, and never ends the view."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import Any

from rlanything.files.reader import FileError, opened, parse, read_json
from rlanything.files.records import LARGEST, is_number

Row = Mapping[str, float | None]
"""The metrics of an iteration: numbers, None for what was not measured."""
MOST_MB = 64
"""Larger files are not looked at: metrics of a run take some kilobytes an iteration."""
LONGEST = 1_000_000
"""Bytes of a line of JSON; longer ones end the reading of a file."""


def mapping(path: Path) -> dict[str, Any]:
    """The JSON object in a file; {} where there is none that can be read."""
    try:
        found = read_json(path) if path.is_file() else None
    except (FileError, OSError):
        return {}
    return found if isinstance(found, dict) else {}


def lines(path: Path) -> tuple[dict[str, Any], ...]:
    """The objects in a file of JSON lines. Lines that are none are left out: the last one may be half-written."""
    try:
        found = os.stat(path)
    except OSError:
        return ()
    return _lines(str(path), found.st_mtime_ns, found.st_ino, found.st_size)


@lru_cache(maxsize=500)
def _lines(path: str, _changed: int, _inode: int, _size: int) -> tuple[dict[str, Any], ...]:
    found = []
    with suppress(FileError, OSError), opened(Path(path), MOST_MB) as file:
        while line := file.readline(LONGEST + 1):
            if len(line) > LONGEST:
                break
            with suppress(FileError):
                value = parse(line)
                found += [value] if isinstance(value, dict) else []
    return tuple(found)


def numbers(found: Mapping[str, Any]) -> Row:
    """The keys that hold a number or null. NaN and what is larger than `LARGEST` count as not measured."""
    return {
        key: _measured(value)
        for key, value in found.items()
        if isinstance(key, str) and (value is None or (is_number(value) and not isinstance(value, bool)))
    }


def _measured(value: float | None) -> float | None:
    return float(value) if value is not None and abs(value) <= LARGEST else None


def metrics_of(path: Path) -> Row:
    """The metrics in a published iteration; {} where they cannot be read. A published file is read once."""
    try:
        found = os.stat(path)
    except OSError:
        return {}
    return _metrics(str(path), found.st_mtime_ns, found.st_ino)


@lru_cache(maxsize=100_000)
def _metrics(path: str, _changed: int, _inode: int) -> Row:
    return numbers(mapping(Path(path)))


def number_at(found: Any, *keys: str) -> float | None:
    """A number in nested mappings; None where there is none."""
    for key in keys:
        found = found.get(key) if isinstance(found, Mapping) else None
    return _measured(found) if is_number(found) and not isinstance(found, bool) else None
