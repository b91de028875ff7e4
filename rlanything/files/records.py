"""Files of JSON: one value, or one value a line, with gzip where the name ends in .gz."""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path

from rlanything.core.errors import ConfigError
from rlanything.core.ids import canonical_json
from rlanything.core.types import Json
from rlanything.files.atomic import write_bytes, write_text


def write_json(path: Path, value: Json) -> None:
    """Indented, sorted, with a final newline: readable and diffable."""
    write_text(path, json.dumps(value, indent=2, sort_keys=True, ensure_ascii=False) + "\n")


def write_lines(path: Path, records: Iterable[Json]) -> None:
    """JSON lines in canonical form; gzip (without time stamp) when the name ends in .gz."""
    data = "".join(canonical_json(record) + "\n" for record in records).encode()
    write_bytes(path, gzip.compress(data, 5, mtime=0) if path.suffix == ".gz" else data)


def read_json(path: Path, advice: str) -> Json:
    """The value in a JSON file. Raises `ConfigError` naming the file, what is wrong, and what to do (`advice`)."""
    try:
        return json.loads(path.read_text())
    except (OSError, ValueError) as error:
        raise ConfigError(f"{path}: cannot be read ({error}); {advice}") from None


def read_lines(path: Path, command: str) -> Iterator[Json]:
    """The records of a JSON-lines file. Raises `ConfigError` naming file, line and the command that makes it."""
    if not path.is_file():
        raise ConfigError(f"{path}: no such file; make it with `{command}`")
    try:
        raw = path.read_bytes()
        text = (gzip.decompress(raw) if path.suffix == ".gz" else raw).decode()
    except (OSError, EOFError, UnicodeDecodeError, zlib.error) as error:
        raise ConfigError(f"{path}: cannot be read ({error}); make it again with `{command}`") from None
    for number, line in enumerate(text.removesuffix("\n").split("\n") if text else [], 1):
        try:
            yield json.loads(line)
        except json.JSONDecodeError as error:
            raise ConfigError(
                f"{path}:{number}: not JSON ({error.msg}); make it again with `{command}`"
            ) from None
