"""What the buffer's files have in common: JSON lines under a header that says format and schema, written whole or not.

Everything that is wrong is told with the file, and the line if it is one.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, TypeVar

from rlanything.buffer.fields import TaskBufferError, parse_line
from rlanything.buffer.files import Files
from rlanything.core.types import Json

Record = TypeVar("Record")


def check_format(path: Path, line: bytes, expected: str, schemas: tuple[int, ...]) -> Mapping[str, Json]:
    """A file's header line, if it is of format `expected` and one of `schemas`. Raises `TaskBufferError`."""
    try:
        data = parse_line(line)
    except TaskBufferError as error:
        raise TaskBufferError(f"{path}: not an {expected} file: its first line is no header") from error
    if data.get("format") != expected:
        raise TaskBufferError(f"{path}: not an {expected} file: its first line is no header")
    if data.get("schema") not in schemas:
        known = " and ".join(map(str, schemas)) + (" are" if len(schemas) > 1 else " is")
        raise TaskBufferError(f"{path}: schema {data.get('schema')} is not supported, only {known}")
    return data


def record(path: Path, number: int, line: bytes, read: Callable[[Mapping[str, Json]], Record]) -> Record:
    """What `read` makes of line `number`. Raises `TaskBufferError`."""
    return located(path, number, lambda: read(parse_line(line)))


def located(path: Path, number: int, read: Callable[[], Record]) -> Record:
    """What `read` gives; what it raises is told with the place. Raises `TaskBufferError`."""
    try:
        return read()
    except (ValueError, RecursionError) as error:
        raise TaskBufferError(f"{path}, line {number}: {error}") from error


@contextmanager
def opened(path: Path, files: Files) -> Iterator[BinaryIO]:
    """A file for reading. Raises `TaskBufferError` when it cannot be opened."""
    try:
        file = files.open(path)
    except OSError as error:
        raise TaskBufferError(f"{path}: {error.strerror or error}") from error
    with file:
        yield file


@contextmanager
def replacing(path: Path) -> Iterator[BinaryIO]:
    """A file that takes the place of `path` when the block ends well, and leaves no trace when it does not."""
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    try:
        with partial.open("wb") as file:
            yield file
            sync(file)
        partial.replace(path)
        sync_folder(path.parent)
    finally:
        partial.unlink(missing_ok=True)


def sync(file: BinaryIO) -> None:
    """Wait until what was written is on disk."""
    file.flush()
    os.fsync(file.fileno())


def sync_folder(folder: Path) -> None:
    """Wait until the names in a folder are on disk: a rename or a new name is there only when its folder is."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
