"""The task buffer on disk: canonical JSONL snapshots, and an append-only file of events that survives a crash.

A snapshot is a header line, then one line a slot, sorted by slot, keys sorted. It is self-contained: every version
with its whole task. The header says nothing about time or place, so equal buffers are byte-identical files.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, TypeVar

from rlanything.buffer import fields
from rlanything.buffer.event import Event
from rlanything.buffer.fields import BufferError, canonical_line, parse_line
from rlanything.buffer.files import DISK, Files
from rlanything.buffer.model import Lineage, TaskBuffer, combine
from rlanything.core.types import Json

SCHEMA = 1
"""Version of both file formats. A reader refuses every other one."""
SNAPSHOT = "rlanything task buffer"
EVENTS = "rlanything task events"

Record = TypeVar("Record")


@dataclass(frozen=True)
class Header:
    """What a snapshot says of itself in its first line; `read_snapshot` holds it against the content."""

    slots: int
    accepted: int
    digest: str

    def to_json(self) -> dict[str, Json]:
        """The header line as a JSON object."""
        own = {"slots": self.slots, "accepted": self.accepted, "digest": self.digest}
        return {"format": SNAPSHOT, "schema": SCHEMA, **own}


@dataclass(frozen=True)
class EventLog:
    """The whole records of an events file; `torn` counts the bytes of a last line that a crash cut short."""

    events: tuple[Event, ...]
    torn: int = 0


def write_snapshot(buffer: TaskBuffer, path: Path) -> None:
    """Write `buffer` so that `path` holds either all of it or what was there before. Makes missing folders."""
    header = Header(len(buffer), buffer.accepted, buffer.digest)
    with _replacing(path) as file:
        file.write(canonical_line(header.to_json()) + b"\n")
        file.writelines(lineage.line + b"\n" for lineage in buffer.lineages)


def read_snapshot(path: Path, files: Files = DISK) -> TaskBuffer:
    """The buffer in a snapshot, every line checked. Raises `BufferError` naming the file, and the line if it is one."""
    lineages: list[Lineage] = []
    digests: list[bytes] = []
    with _opened(path, files) as file:
        header = _snapshot_header(path, file.readline())
        for number, line in enumerate(file, start=2):
            lineages.append(_record(path, number, line, Lineage.from_json))
            digests.append(hashlib.sha256(line.rstrip(b"\n")).digest())
    try:
        buffer = TaskBuffer(tuple(lineages))
    except BufferError as error:
        raise BufferError(f"{path}: {error}") from error
    _check(path, header, Header(len(buffer), buffer.accepted, combine(digests)))
    return buffer


def read_header(path: Path, files: Files = DISK) -> Header:
    """What a snapshot says of itself, at the price of one line: not held against the content."""
    with _opened(path, files) as file:
        return _snapshot_header(path, file.readline())


def append_events(path: Path, events: Iterable[Event]) -> int:
    """Add events at the end and wait until they are on disk. Returns how many torn bytes of a crash it cut off first.

    Makes the file, with its header line, if it is missing. A last record that only lacks its newline is kept.
    """
    lines = b"".join(canonical_line(event.to_json()) + b"\n" for event in events)
    path.parent.mkdir(parents=True, exist_ok=True)
    created = not path.exists()
    with path.open("a+b") as file:
        torn = _mend(path, file)
        header = b"" if file.tell() else _events_header()
        file.write(header + lines)
        _sync(file)
    if created:
        _sync_folder(path.parent)
    return torn


def read_events(path: Path, files: Files = DISK) -> EventLog:
    """Every whole record of an events file. A torn last line is reported in the value; any other damage raises."""
    with _opened(path, files) as file:
        content = file.read()
    *lines, tail = content.split(b"\n")
    if lines:
        _check_format(path, lines[0], EVENTS)
    elif tail and not _events_header().startswith(tail):
        raise BufferError(f"{path}: not a file of buffer events")
    events = [_record(path, number, line, Event.from_json) for number, line in enumerate(lines[1:], start=2)]
    if lines and _is_whole(tail):
        events.append(_record(path, len(lines) + 1, tail, Event.from_json))
        tail = b""
    return EventLog(tuple(events), torn=len(tail))


def _snapshot_header(path: Path, line: bytes) -> Header:
    data = _check_format(path, line, SNAPSHOT)
    return _located(path, 1, lambda: _header(data))


def _header(data: Mapping[str, Json]) -> Header:
    return Header(fields.count(data, "slots"), fields.count(data, "accepted"), fields.text(data, "digest"))


def _check(path: Path, stated: Header, found: Header) -> None:
    if stated.slots != found.slots:
        raise BufferError(f"{path}: the header says {stated.slots} slots, the file has {found.slots}")
    if stated.digest != found.digest:
        told, real = stated.digest[:12], found.digest[:12]
        raise BufferError(f"{path}: digest mismatch, the header says {told}, the content gives {real}")
    if stated.accepted != found.accepted:
        raise BufferError(
            f"{path}: the header says {stated.accepted} accepted, the file has {found.accepted}"
        )


def _check_format(path: Path, line: bytes, expected: str) -> Mapping[str, Json]:
    try:
        data = parse_line(line)
    except BufferError as error:
        raise BufferError(f"{path}: not an {expected} file: its first line is no header") from error
    if data.get("format") != expected:
        raise BufferError(f"{path}: not an {expected} file: its first line is no header")
    if data.get("schema") != SCHEMA:
        raise BufferError(f"{path}: schema {data.get('schema')} is not supported, only {SCHEMA} is")
    return data


def _record(path: Path, number: int, line: bytes, read: Callable[[Mapping[str, Json]], Record]) -> Record:
    return _located(path, number, lambda: read(parse_line(line)))


def _located(path: Path, number: int, read: Callable[[], Record]) -> Record:
    try:
        return read()
    except (ValueError, RecursionError) as error:
        raise BufferError(f"{path}, line {number}: {error}") from error


def _events_header() -> bytes:
    return canonical_line({"format": EVENTS, "schema": SCHEMA}) + b"\n"


def _is_whole(tail: bytes) -> bool:
    # A proper prefix of a JSON object is never a JSON object, so a tail that parses lacks nothing but its newline.
    try:
        parse_line(tail)
    except BufferError:
        return False
    return True


def _mend(path: Path, file: BinaryIO) -> int:
    """Make the file end with a whole line and stand at its end. Returns how many bytes were cut off."""
    file.seek(0)
    first = file.readline()
    if first.endswith(b"\n"):
        _check_format(path, first, EVENTS)
    elif not _events_header().startswith(first):
        raise BufferError(f"{path}: not a file of buffer events")
    tail = _last_partial_line(file)
    if first.endswith(b"\n") and _is_whole(tail):
        file.write(b"\n")
        return 0
    file.truncate(file.seek(-len(tail), os.SEEK_END))
    return len(tail)


def _last_partial_line(file: BinaryIO, block: int = 1 << 16) -> bytes:
    """What follows the last newline, found from the end: the file may be long."""
    position = file.seek(0, os.SEEK_END)
    tail = b""
    while position and b"\n" not in tail:
        step = min(block, position)
        position = file.seek(position - step)
        tail = file.read(step) + tail
    return tail.rpartition(b"\n")[2]


@contextmanager
def _opened(path: Path, files: Files) -> Iterator[BinaryIO]:
    try:
        file = files.open(path)
    except OSError as error:
        raise BufferError(f"{path}: {error.strerror or error}") from error
    with file:
        yield file


@contextmanager
def _replacing(path: Path) -> Iterator[BinaryIO]:
    """A file that takes the place of `path` when the block ends well, and leaves no trace when it does not."""
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    try:
        with partial.open("wb") as file:
            yield file
            _sync(file)
        partial.replace(path)
        _sync_folder(path.parent)
    finally:
        partial.unlink(missing_ok=True)


def _sync(file: BinaryIO) -> None:
    file.flush()
    os.fsync(file.fileno())


def _sync_folder(folder: Path) -> None:
    # A rename or a new name is on disk only when its folder is.
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
