"""The events of a run on disk: an append-only file of JSON lines. A crash at any byte loses no whole record.

The events are a chain. Each holds the sha256 of the line before it in `previous`; the first one holds the `start` that
the header names. So the head, which is the sha256 of the last line, stands for all events and their order. Every
snapshot names the head of the events before it. An event that was changed, removed, moved, repeated or put in breaks
the chain.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from rlanything.buffer.event import Event
from rlanything.buffer.fields import TaskBufferError, canonical_line, parse_line, text
from rlanything.buffer.filesystem import DISK, FileSystem
from rlanything.buffer.lines import check_format, opened, record
from rlanything.core.types import Json
from rlanything.files import atomic

EVENTS = "rlanything task events"
SCHEMA = 2
"""Version of the file's format. Version 1, which has no chain, can be read; every other one is refused."""
UNCHAINED = 1
_BLOCK = 1 << 16
"""Bytes read at a time to find the last line."""


@dataclass(frozen=True)
class EventLog:
    """The whole records of an events file; `torn` counts the bytes of a last line that a crash cut short.

    heads: the head of the chain before the first event and after each; empty where the file has no chain.
    """

    events: tuple[Event, ...]
    torn: int = 0
    heads: tuple[str, ...] = ()


def events_path(folder: Path) -> Path:
    """Where the events lie in a buffer's folder."""
    return folder / "events.jsonl"


def append_events(path: Path, events: Iterable[Event], start: str = "") -> int:
    """Add events at the end and wait until they are on disk. Returns how many torn bytes it cut off first.

    Makes the file, with its header line, if it is missing; `start` is then what the chain begins with. A last record
    that lacks only its newline is kept. Raises `TaskBufferError` for a file of another format, or without a chain, and
    `OSError` when it cannot be written.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    created = not path.exists()
    with path.open("a+b") as file:
        torn = _mend(path, file)
        if not file.tell():
            file.write(_header(start))
        head = _head(file)
        for event in events:
            line = canonical_line({**event.to_json(), "previous": head})
            file.write(line + b"\n")
            head = _digest(line)
    atomic.sync(path)
    if created:
        atomic.sync(path.parent)
    return torn


def read_events(path: Path, files: FileSystem = DISK) -> EventLog:
    """Every whole record, and the size of a torn last line. Raises `TaskBufferError` for any other damage."""
    with opened(path, files) as file:
        content = file.read()
    *lines, tail = content.split(b"\n")
    if not lines:
        if tail and not _may_begin(tail):
            raise TaskBufferError(f"{path}: not a file of buffer events")
        return EventLog((), torn=len(tail))
    if _is_whole(tail):
        lines.append(tail)
        tail = b""
    header = check_format(path, lines[0], EVENTS, (UNCHAINED, SCHEMA))
    events = tuple(record(path, number, line, Event.from_json) for number, line in enumerate(lines[1:], 2))
    return EventLog(events, len(tail), () if header["schema"] == UNCHAINED else _heads(path, lines))


def _heads(path: Path, lines: list[bytes]) -> tuple[str, ...]:
    """The heads of the chain, every link checked."""
    heads = [record(path, 1, lines[0], _start)]
    for number, line in enumerate(lines[1:], 2):
        if record(path, number, line, _previous) != heads[-1]:
            raise TaskBufferError(
                f"{path}, line {number}: the event does not follow the line before it: "
                "an event was changed, removed, moved or put in"
            )
        heads.append(_digest(line))
    return tuple(heads)


def _start(data: Mapping[str, Json]) -> str:
    return text(data, "start")


def _previous(data: Mapping[str, Json]) -> str:
    return text(data, "previous")


def _digest(line: bytes) -> str:
    return hashlib.sha256(line).hexdigest()


def _head(file: BinaryIO) -> str:
    """The head of a file whose last line is whole."""
    size = file.seek(0, os.SEEK_END)
    line = _last_partial_line(file, end=size - 1)
    file.seek(size)
    data = parse_line(line)
    return _start(data) if "start" in data else _digest(line)


def _header(start: str) -> bytes:
    return canonical_line({"format": EVENTS, "schema": SCHEMA, "start": start}) + b"\n"


def _may_begin(part: bytes) -> bool:
    """Whether a header may begin with these bytes; they have no newline."""
    fixed = _header("").partition(b'"start"')[0]
    return fixed.startswith(part[: len(fixed)])


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
        check_format(path, first, EVENTS, (SCHEMA,))
    elif not _may_begin(first):
        raise TaskBufferError(f"{path}: not a file of buffer events")
    tail = _last_partial_line(file)
    if first.endswith(b"\n") and _is_whole(tail):
        file.write(b"\n")
        return 0
    file.truncate(file.seek(-len(tail), os.SEEK_END))
    return len(tail)


def _last_partial_line(file: BinaryIO, end: int | None = None) -> bytes:
    """What follows the last newline before `end` (the end of the file), found from there: the file may be long."""
    position = file.seek(0, os.SEEK_END) if end is None else end
    tail = b""
    while position and b"\n" not in tail:
        step = min(_BLOCK, position)
        position = file.seek(position - step)
        tail = file.read(step) + tail
    return tail.rpartition(b"\n")[2]
