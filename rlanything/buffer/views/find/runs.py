"""The task buffer of a whole run: one snapshot an iteration and the events between them, in one folder.

    runs/<arm>/seed-<n>/buffer/iter_0000.jsonl ... iter_NNNN.jsonl events.jsonl

`iter_N` is the buffer at the start of iteration N: the v0s with the events of all earlier iterations applied. The last
one is the buffer at the end of the run.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from rlanything.buffer.event import Event
from rlanything.buffer.eventlog import EventLog, events_path, read_events
from rlanything.buffer.fields import TaskBufferError
from rlanything.buffer.filesystem import DISK, FileSystem
from rlanything.buffer.model import TaskBuffer
from rlanything.buffer.storage import (
    FOLDER,
    Header,
    read_header,
    read_snapshot,
    snapshot_iteration,
    snapshot_path,
)
from rlanything.buffer.views.find.live import live_run

if TYPE_CHECKING:
    from rlanything.buffer.views.find.measurements import Measurement

_DEPTH = 6
"""How many folders deep `find_runs` looks. A run lies two below `runs/`."""


@dataclass(frozen=True)
class RunBuffer:
    """A run's buffer, read on demand. `iterations`: those that have a snapshot, ascending, at least one."""

    folder: Path
    iterations: tuple[int, ...]
    files: FileSystem = DISK
    bases: dict[Path, TaskBuffer] = field(default_factory=dict, compare=False, repr=False)
    """The base snapshots read so far (see `read_snapshot`)."""
    counted: dict[Path, list[Measurement]] = field(default_factory=dict, compare=False, repr=False)
    """What the files of rollouts read so far say (see `measurements`)."""

    def at(self, iteration: int) -> TaskBuffer:
        """The buffer at the start of `iteration`. Raises `TaskBufferError` for a missing or damaged one."""
        return read_snapshot(self._path(iteration), self.files, self.bases)

    def header(self, iteration: int) -> Header:
        """The header of that snapshot; the rest of it is not read."""
        return read_header(self._path(iteration), self.files)

    @property
    def latest(self) -> TaskBuffer:
        """The buffer at the end of the run."""
        return self.at(self.iterations[-1])

    @cached_property
    def log(self) -> EventLog:
        """The events file; empty when the run has none."""
        path = events_path(self.folder)
        return read_events(path, self.files) if path.name in self.files.names(self.folder) else EventLog(())

    @property
    def events(self) -> tuple[Event, ...]:
        """All events, in order."""
        return self.log.events

    def events_before(self, iteration: int) -> tuple[Event, ...]:
        """The events of the iterations before `iteration`, in order."""
        return tuple(event for event in self.events if event.iteration < iteration)

    def replay(self, iteration: int) -> TaskBuffer:
        """The buffer that the v0s of the first snapshot and the events give for `iteration`."""
        return self.at(self.iterations[0]).origin().apply(self.events_before(iteration))

    def _path(self, iteration: int) -> Path:
        if iteration not in self.iterations:
            held = f"{self.iterations[0]} to {self.iterations[-1]}"
            raise TaskBufferError(f"{self.folder}: no snapshot of iteration {iteration} (there are {held})")
        return snapshot_path(self.folder, iteration)


def open_run(path: Path, files: FileSystem = DISK) -> RunBuffer:
    """The buffer of the run in folder `path`, finished or in training. `path` may also be the buffer's own folder.

    Raises `TaskBufferError` if there is none.
    """
    if files is DISK and not path.is_dir():
        raise TaskBufferError(f"{path}: no such folder")
    live = live_run(path) if files is DISK else None
    files = live or files
    for folder in (path / FOLDER, path):
        iterations = _iterations(folder, files)
        if iterations:
            return RunBuffer(folder, iterations, files)
    if FOLDER in files.names(path):
        raise TaskBufferError(f"{path / FOLDER}: empty, it has no snapshot iter_0000.jsonl")
    raise TaskBufferError(f"{path}: no buffer there")


def find_runs(root: Path) -> list[Path]:
    """The folders of the runs at or below `root` that have a buffer, sorted by name, numbers by value."""
    found: list[Path] = []
    for name, folders, _ in os.walk(root):
        here = Path(name)
        if live_run(here) or _iterations(here / FOLDER, DISK) or _iterations(here, DISK):
            found.append(here)
            folders.clear()
        if len(here.relative_to(root).parts) >= _DEPTH:
            folders.clear()
        folders[:] = [folder for folder in folders if not folder.startswith(".")]
    return sorted(found, key=natural)


def run_around(place: Path) -> Path | None:
    """The folder of the run, finished or in training, in which a place lies or would lie; None where it is in none."""
    around = place.resolve().parents
    if around and _iterations(around[0], DISK):
        return around[0]
    runs = (folder for folder in around if live_run(folder) or _iterations(folder / FOLDER, DISK))
    return next(runs, None)


def _iterations(folder: Path, files: FileSystem) -> tuple[int, ...]:
    found = (snapshot_iteration(name) for name in files.names(folder))
    return tuple(sorted(iteration for iteration in found if iteration is not None))


def natural(path: Path) -> list[tuple[int, str]]:
    """A sort key that puts seed-2 before seed-10."""
    # re.split with a group alternates text and digits, so equal positions compare like with like.
    parts = re.split(r"(\d+)", path.as_posix())
    return [(int(part), "") if part.isdecimal() else (-1, part) for part in parts]
