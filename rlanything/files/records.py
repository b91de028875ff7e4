"""Files of JSON: one value, or one value a line, with gzip where the name ends in .gz."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable, Iterator
from pathlib import Path

from rlanything.core.errors import ConfigError
from rlanything.core.ids import canonical_json
from rlanything.core.types import Json
from rlanything.files.atomic import write_bytes, write_text
from rlanything.files.reader import FileError, opened, values


def write_json(path: Path, value: Json) -> None:
    """Indented, sorted, with a final newline: readable and diffable."""
    write_text(path, json.dumps(value, indent=2, sort_keys=True, ensure_ascii=False) + "\n")


def write_lines(path: Path, records: Iterable[Json]) -> None:
    """JSON lines in canonical form; gzip (without time stamp) when the name ends in .gz."""
    data = "".join(canonical_json(record) + "\n" for record in records).encode()
    write_bytes(path, gzip.compress(data, 5, mtime=0) if path.suffix == ".gz" else data)


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
