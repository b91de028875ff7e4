"""Files of JSON: one value, or one value a line, with gzip where the name ends in .gz."""

from __future__ import annotations

import gzip
import json
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from rlanything.core.errors import ConfigError
from rlanything.core.ids import canonical_json
from rlanything.core.types import Json
from rlanything.files.atomic import write_bytes, write_text
from rlanything.files.reader import FileError, opened, read_objects, values


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


def read_metrics(path: Path) -> list[dict[str, float | None]]:
    """The rows of a run's metrics.jsonl: numbers, or null for what was not measured. Raises `FileError`."""
    rows = list(read_objects(path))
    for number, row in enumerate(rows, 1):
        for key, value in row.items():
            if value is not None and not is_number(value):
                raise FileError(f"{path}:{number}: {key!r} must be a number or null")
    return rows


def read_lines(path: Path, command: str) -> Iterator[Json]:
    """The records of a JSON-lines file. Raises `ConfigError` naming file, line and the command that makes it."""
    if not path.exists():
        raise ConfigError(f"{path}: no such file; make it with `{command}`")
    try:
        with opened(path) as file:
            for _, value in values(file, path):
                yield value
    except FileError as error:
        raise ConfigError(f"{error}; make it again with `{command}`") from None
