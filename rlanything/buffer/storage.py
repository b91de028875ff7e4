"""Snapshots of the task buffer on disk: a header line, then one line of canonical JSON a slot, ascending.

A snapshot is whole, or it names the run's first snapshot as its base and holds only the slots that differ from it. The
header counts and digests all slots in both cases. It has no time and no path, so equal buffers over equal bases are
byte-identical files.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from rlanything.buffer import fields
from rlanything.buffer.fields import TaskBufferError, canonical_line
from rlanything.buffer.filesystem import DISK, FileSystem
from rlanything.buffer.lines import check_format, opened, record
from rlanything.buffer.model import Lineage, TaskBuffer, combine
from rlanything.core.types import Json
from rlanything.files.atomic import replacing

SNAPSHOT = "rlanything task buffer"
SCHEMA = 2
"""Version of the file format. Every other one is refused."""
FOLDER = "buffer"
"""Name of the buffer's folder in the folder of a finished run."""
START = "iter_0000.jsonl"
"""Name of a run's first snapshot, the base of the later ones."""
_NAME = re.compile(r"iter_(\d{4,})\.jsonl")


@dataclass(frozen=True)
class Base:
    """The whole snapshot that another one builds on: the digest of its buffer, and its file name (never a path)."""

    digest: str
    file: str = START


@dataclass(frozen=True)
class Header:
    """The first line of a snapshot. `read_snapshot` compares it with the content.

    events: the head of the chain of events before it (see `eventlog`); None where the snapshot is not of a run.
    """

    slots: int
    accepted: int
    digest: str
    base: Base | None = None
    events: str | None = None

    def to_json(self) -> dict[str, Json]:
        """The header line as a JSON object."""
        own = {"slots": self.slots, "accepted": self.accepted, "digest": self.digest}
        over = {"base": {"digest": self.base.digest, "file": self.base.file}} if self.base else {}
        chain = {} if self.events is None else {"events": self.events}
        return {"format": SNAPSHOT, "schema": SCHEMA, **own, **over, **chain}


Digested = tuple[Lineage, bytes]
"""A slot, and the sha256 of its line as it stands in the file."""


def snapshot_path(folder: Path, iteration: int) -> Path:
    """Where the snapshot of an iteration lies in a buffer's folder."""
    return folder / f"iter_{iteration:04d}.jsonl"


def snapshot_iteration(name: str) -> int | None:
    """The iteration that a snapshot's file name says; None for any other name."""
    match = _NAME.fullmatch(name)
    return int(match[1]) if match else None


def write_snapshot(
    buffer: TaskBuffer, path: Path, base: TaskBuffer | None = None, events: str | None = None
) -> None:
    """Write `buffer` to `path`, all of it or nothing (`files.atomic`). Makes missing folders. Raises `OSError`.

    With `base`, the buffer in the whole snapshot `START`, only the slots that differ from it are written. That file
    must lie beside `path` or in one of the two folders above. A buffer with other slots than its base is written whole.
    """
    header = Header(len(buffer), buffer.accepted, buffer.digest, events=events)
    own = buffer.lineages
    if base is not None and base.slots == buffer.slots:
        header = replace(header, base=Base(base.digest, START))
        pairs = zip(own, base.lineages, strict=True)
        own = tuple(new for new, old in pairs if new is not old and new.digest != old.digest)
    with replacing(path) as file:
        file.write(canonical_line(header.to_json()) + b"\n")
        file.writelines(lineage.line + b"\n" for lineage in own)


def read_snapshot(
    path: Path, files: FileSystem = DISK, bases: dict[Path, TaskBuffer] | None = None
) -> TaskBuffer:
    """The buffer in a snapshot, every line checked. Raises `TaskBufferError` with the file, and the line if it can.

    bases: the base snapshots read so far, by path; it saves time when several snapshots of one run are read.
    """
    header, slots = _read(path, files)
    if header.base is not None:
        slots = _over(
            path, header.base, _base(path, header.base, files, {} if bases is None else bases), slots
        )
    return _checked(path, header, slots)


def read_header(path: Path, files: FileSystem = DISK) -> Header:
    """The header of a snapshot; only the first line is read, and not compared with the content."""
    with opened(path, files) as file:
        return _stated(path, file.readline())


def _read(path: Path, files: FileSystem) -> tuple[Header, list[Digested]]:
    with opened(path, files) as file:
        header = _stated(path, file.readline())
        slots = [
            (record(path, number, line, Lineage.from_json), hashlib.sha256(line.rstrip(b"\n")).digest())
            for number, line in enumerate(file, start=2)
        ]
    return header, slots


def _base(path: Path, stated: Base, files: FileSystem, known: dict[Path, TaskBuffer]) -> TaskBuffer:
    """The buffer that the snapshot `path` builds on, its digest checked."""
    folders = (path.parent, path.parent.parent, path.parent.parent.parent)
    place = next((folder / stated.file for folder in folders if stated.file in files.names(folder)), None)
    if place is None:
        raise TaskBufferError(
            f"{path}: it holds only what differs from {stated.file}, which is neither beside it nor in the two folders "
            "above; put it there, or ask for an export of the run"
        )
    if place not in known:
        header, slots = _read(place, files)
        if header.base is not None:
            raise TaskBufferError(f"{path}: its base {place} is not a whole snapshot")
        known[place] = _checked(place, header, slots)
    if known[place].digest != stated.digest:
        made, found = stated.digest[:12], known[place].digest[:12]
        raise TaskBufferError(
            f"{path}: it builds on an {stated.file} with digest {made}, but that of {place} is {found}"
        )
    return known[place]


def _over(path: Path, stated: Base, base: TaskBuffer, slots: list[Digested]) -> list[Digested]:
    """All slots: those of the base, with the snapshot's own in their place."""
    own = {lineage.slot: (lineage, digest) for lineage, digest in slots}
    if [lineage.slot for lineage, _ in slots] != sorted(own):
        raise TaskBufferError(f"{path}: its slots are not in ascending order, each once")
    strangers = [slot for slot in own if slot not in base]
    if strangers:
        raise TaskBufferError(f"{path}: slot {strangers[0]} is not in its base {stated.file}")
    return [own.get(lineage.slot) or (lineage, lineage.digest) for lineage in base.lineages]


def _checked(path: Path, stated: Header, slots: list[Digested]) -> TaskBuffer:
    try:
        buffer = TaskBuffer(tuple(lineage for lineage, _ in slots))
    except TaskBufferError as error:
        raise TaskBufferError(f"{path}: {error}") from error
    found = Header(len(buffer), buffer.accepted, combine(digest for _, digest in slots))
    if stated.slots != found.slots:
        raise TaskBufferError(f"{path}: the header says {stated.slots} slots, the file has {found.slots}")
    if stated.digest != found.digest:
        said, real = stated.digest[:12], found.digest[:12]
        raise TaskBufferError(f"{path}: digest mismatch, the header says {said}, the content gives {real}")
    if stated.accepted != found.accepted:
        problem = f"the header says {stated.accepted} accepted, the file has {found.accepted}"
        raise TaskBufferError(f"{path}: {problem}")
    return buffer


def _stated(path: Path, line: bytes) -> Header:
    check_format(path, line, SNAPSHOT, (SCHEMA,))
    return record(path, 1, line, _header)


def _header(data: Mapping[str, Json]) -> Header:
    counts = fields.count(data, "slots"), fields.count(data, "accepted")
    base = data.get("base")
    events = fields.text(data, "events") if "events" in data else None
    return Header(*counts, fields.text(data, "digest"), None if base is None else _stated_base(base), events)


def _stated_base(data: Json) -> Base:
    if not isinstance(data, dict):
        raise TaskBufferError("field 'base' must be an object")
    base = Base(fields.text(data, "digest"), fields.text(data, "file"))
    if snapshot_iteration(base.file) is None:
        raise TaskBufferError(f"field 'base' names {base.file[:40]!r}, which is no snapshot's name")
    return base
