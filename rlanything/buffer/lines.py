"""Reading the buffer's files: JSON lines below a header line with the file's format and schema.

Every error names the file, and the line if the error is in one.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, TypeVar

from rlanything.buffer.fields import TaskBufferError, parse_line
from rlanything.buffer.filesystem import FileSystem
from rlanything.core.types import Json
from rlanything.files.reader import FileError

Record = TypeVar("Record")


def check_format(path: Path, line: bytes, expected: str, schemas: Collection[int]) -> dict[str, Any]:
    """The header on `line`. Raises `TaskBufferError` unless it is of format `expected` and one of `schemas`."""
    try:
        data = parse_line(line)
    except TaskBufferError as error:
        raise TaskBufferError(f"{path}: not an {expected} file: its first line is no header") from error
    if data.get("format") != expected:
        raise TaskBufferError(f"{path}: not an {expected} file: its first line is no header")
    if data.get("schema") not in schemas:
        only = f"only {' and '.join(map(str, schemas))} {'is' if len(schemas) == 1 else 'are'}"
        raise TaskBufferError(f"{path}: schema {data.get('schema')} is not supported, {only}")
    return data


def record(path: Path, number: int, line: bytes, read: Callable[[Mapping[str, Json]], Record]) -> Record:
    """What `read` makes of line `number`. Raises `TaskBufferError` with file and line."""
    try:
        return read(parse_line(line))
    except (ValueError, RecursionError) as error:
        raise TaskBufferError(f"{path}, line {number}: {error}") from error


@contextmanager
def opened(path: Path, files: FileSystem) -> Iterator[BinaryIO]:
    """A file for reading. Raises `TaskBufferError` when it cannot be opened."""
    try:
        file = files.open(path)
    except FileError as error:
        raise TaskBufferError(str(error)) from error
    except OSError as error:
        raise TaskBufferError(f"{path}: {error.strerror or error}") from error
    with file:
        yield file
