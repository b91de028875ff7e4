"""Snapshots of an older schema, written again in the present one: the same buffers, fewer bytes.

A run's first snapshot stays whole and the others keep what differs from it. Snapshots are replaced one by one, each of
them readable at any moment: killed on the way, a run is a mixture that every command reads, and migrating goes on.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from rlanything.buffer.fields import TaskBufferError
from rlanything.buffer.model import TaskBuffer
from rlanything.buffer.runs import RunBuffer, find_runs, open_run
from rlanything.buffer.storage import SCHEMA, read_header, read_snapshot, snapshot_path, write_snapshot
from rlanything.core.types import Json


@dataclass(frozen=True)
class Migrated:
    """A run, or a file that stands alone: how many of its snapshots were written again, and their bytes in all."""

    name: str
    snapshots: int
    written: int
    before: int
    after: int

    def to_json(self) -> dict[str, Json]:
        """As a JSON object."""
        counts = {"snapshots": self.snapshots, "written": self.written}
        return {"name": self.name, **counts, "bytes": {"before": self.before, "after": self.after}}


def migrate_all(path: Path) -> Iterator[Migrated]:
    """Bring a snapshot, a run or every run below a folder to the present schema. Raises `TaskBufferError`."""
    if path.is_file():
        yield _migrate(path.as_posix(), [path])
        return
    runs = find_runs(path)
    if not runs:
        raise TaskBufferError(f"{path}: no run with a buffer there")
    for run in runs:
        yield _migrate(run.as_posix(), _files(open_run(run)))


def _files(run: RunBuffer) -> list[Path]:
    files = [snapshot_path(run.folder, iteration) for iteration in run.iterations]
    if not files[0].is_file():
        raise TaskBufferError(f"{run.folder.parent}: the run is on its way; migrate it once it is finished")
    return files


def _migrate(name: str, files: list[Path]) -> Migrated:
    """The first file stays whole; the others build on it."""
    before, written = _size(files), 0
    first, bases = files[0], dict[Path, TaskBuffer]()
    for path in files:
        header = read_header(path)
        if header.schema < SCHEMA or (path != first and header.base is None):
            base = None if path == first else _base(first, bases)
            write_snapshot(read_snapshot(path, bases=bases), path, base, first.name)
            written += 1
    return Migrated(name, len(files), written, before, _size(files))


def _base(first: Path, bases: dict[Path, TaskBuffer]) -> TaskBuffer:
    if first not in bases:
        bases[first] = read_snapshot(first)
    return bases[first]


def _size(files: list[Path]) -> int:
    return sum(path.stat().st_size for path in files)
