"""The events of a run on disk: an append-only file of JSON lines. A crash at any byte loses no whole record."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from rlanything.buffer.event import Event
from rlanything.buffer.fields import TaskBufferError, canonical_line, parse_line
from rlanything.buffer.filesystem import DISK, FileSystem
from rlanything.buffer.lines import check_format, opened, record
from rlanything.files import atomic

EVENTS = "rlanything task events"
SCHEMA = 1
"""Version of the file's format. Every other one is refused."""


@dataclass(frozen=True)
class EventLog:
    """The whole records of an events file; `torn` counts the bytes of a last line that a crash cut short."""

    events: tuple[Event, ...]
    torn: int = 0


def events_path(folder: Path) -> Path:
    """Where the events lie in a buffer's folder."""
    return folder / "events.jsonl"


def append_events(path: Path, events: Iterable[Event]) -> int:
    """Add events at the end and wait until they are on disk. Returns how many torn bytes it cut off first.

    Makes the file, with its header line, if it is missing. A last record that lacks only its newline is kept.
    Raises `TaskBufferError` for a file of another format, `OSError` when it cannot be written.
    """
    lines = b"".join(canonical_line(event.to_json()) + b"\n" for event in events)
    path.parent.mkdir(parents=True, exist_ok=True)
    created = not path.exists()
    with path.open("a+b") as file:
        torn = _mend(path, file)
        header = b"" if file.tell() else _header()
        file.write(header + lines)
    atomic.sync(path)
    if created:
        atomic.sync(path.parent)
    return torn


def read_events(path: Path, files: FileSystem = DISK) -> EventLog:
    """Every whole record, and the size of a torn last line. Raises `TaskBufferError` for any other damage."""
    with opened(path, files) as file:
        content = file.read()
    *lines, tail = content.split(b"\n")
    if lines:
        check_format(path, lines[0], EVENTS, SCHEMA)
    elif tail and not _header().startswith(tail):
        raise TaskBufferError(f"{path}: not a file of buffer events")
    events = [record(path, number, line, Event.from_json) for number, line in enumerate(lines[1:], start=2)]
    if lines and _is_whole(tail):
        events.append(record(path, len(lines) + 1, tail, Event.from_json))
        tail = b""
    return EventLog(tuple(events), torn=len(tail))


def _header() -> bytes:
    return canonical_line({"format": EVENTS, "schema": SCHEMA}) + b"\n"


def _is_whole(tail: bytes) -> bool:
    # Part of a JSON object is never a JSON object: a tail that parses lacks only its newline.
    try:
        parse_line(tail)
    except TaskBufferError:
        return False
    return True


def _mend(path: Path, file: BinaryIO) -> int:
    """Cut off a torn last line and stand at the end of the file. Returns how many bytes were cut off."""
    file.seek(0)
    first = file.readline()
    if first.endswith(b"\n"):
        check_format(path, first, EVENTS, SCHEMA)
    elif not _header().startswith(first):
        raise TaskBufferError(f"{path}: not a file of buffer events")
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
