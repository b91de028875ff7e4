"""Files of JSON: one value, or one value a line, with gzip where the name ends in .gz."""

from __future__ import annotations

import gzip
import json
import math
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from rlanything.core.errors import ConfigError
from rlanything.core.ids import canonical_json
from rlanything.core.types import Json
from rlanything.files.atomic import write_bytes, write_text
from rlanything.files.reader import (
    MOST_MB,
    PANEL_MB,
    FileError,
    TooLargeError,
    opened,
    read_object,
    read_objects,
    values,
)

LARGEST = 1e15
"""Larger numbers are no metrics of a run, and sums of them overflow."""
_SHOWN = 40
"""Characters of a value in a message."""


def write_json(path: Path, value: Json) -> None:
    """Indented, sorted, with a final newline: readable and diffable."""
    write_text(path, json.dumps(value, indent=2, sort_keys=True, ensure_ascii=False) + "\n")


def write_lines(path: Path, records: Iterable[Json]) -> None:
    """JSON lines in canonical form; gzip (without time stamp) when the name ends in .gz."""
    data = "".join(canonical_json(record) + "\n" for record in records).encode()
    write_bytes(path, gzip.compress(data, 5, mtime=0) if path.suffix == ".gz" else data)


def is_number(value: Json) -> bool:
    """Whether a value of JSON is a number that a float can hold. An integer of JSON may be larger."""
    return isinstance(value, float) or (isinstance(value, int) and abs(value) <= sys.float_info.max)


def metric_of(row: Mapping[str, Json], key: str, where: str) -> float | None:
    """A number of a row of metrics; None where it was not measured: missing, null or NaN.

    Raises `FileError` for anything else, naming the place (`where`), the iteration and the key.
    """
    value = row.get(key)
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return None
    if isinstance(value, bool) or not is_number(value) or abs(value) > LARGEST:
        raise _unexpected(row, key, where, f"a number from -{LARGEST:g} to {LARGEST:g}, or null")
    return float(value)


def whole_metric(row: Mapping[str, Json], key: str, where: str, most: float = LARGEST) -> int:
    """The number of a row of metrics that counts something. Raises `FileError`, also where it was not measured."""
    value = metric_of(row, key, where)
    if value is None or not 0 <= value <= most or not value.is_integer():
        raise _unexpected(row, key, where, f"a whole number from 0 to {most:g}")
    return int(value)


def read_metrics(path: Path) -> list[dict[str, float | None]]:
    """The rows of a run's metrics.jsonl: numbers, or null or NaN for what was not measured. Raises `FileError`."""
    return [_numbers(row, f"{path}:{number}") for number, row in enumerate(read_objects(path), 1)]


def read_iteration(path: Path) -> dict[str, float | None]:
    """The metrics of one published iteration of a run in training, as a row of `read_metrics`. Raises `FileError`."""
    return _numbers(read_object(path), str(path))


def _numbers(row: dict[str, Json], where: str) -> dict[str, float | None]:
    for key in row:
        metric_of(row, key, where)
    return row


def _unexpected(row: Mapping[str, Json], key: str, where: str, expected: str) -> FileError:
    at = "" if key == "iteration" else f" iteration {json.dumps(row.get('iteration'))[:_SHOWN]}:"
    return FileError(f"{where}:{at} {key!r} is {json.dumps(row.get(key))[:_SHOWN]}; it must be {expected}")


def read_panel(path: Path, command: str) -> list[Json]:
    """The lines of a reward panel. Raises `ConfigError` as `read_lines` does."""
    return list(read_lines(path, command, PANEL_MB))


def read_lines(path: Path, command: str, most_mb: int = MOST_MB) -> Iterator[Json]:
    """The records of a JSON-lines file. Raises `ConfigError` naming file, line and the command that makes it."""
    if not path.exists():
        raise ConfigError(f"{path}: no such file; make it with `{command}`")
    try:
        with opened(path, most_mb) as file:
            for _, value in values(file, path, most_mb):
                yield value
    except TooLargeError:
        raise
    except FileError as error:
        raise ConfigError(f"{error}; make it again with `{command}`") from None
