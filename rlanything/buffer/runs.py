"""The task buffer of a whole run: one snapshot an iteration and the events between them, in one folder.

    runs/<arm>/seed-<n>/buffer/iter_0000.jsonl ... iter_NNNN.jsonl events.jsonl

`iter_N` is the buffer that iteration N starts with: the v0s with every event of an earlier iteration applied. So
`iter_0000` holds the v0s, and the last one is what the run ends with.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from rlanything.buffer.event import Event
from rlanything.buffer.eventlog import EventLog, read_events
from rlanything.buffer.fields import TaskBufferError
from rlanything.buffer.files import DISK, Files
from rlanything.buffer.live import live_run
from rlanything.buffer.model import TaskBuffer
from rlanything.buffer.storage import (
    Header,
    read_header,
    read_snapshot,
    snapshot_iteration,
    snapshot_path,
)

FOLDER = "buffer"
"""Name of the buffer's folder in the folder of a run."""
_DEPTH = 6
"""How many folders deep `find_runs` looks; a run lies two below `runs/`."""


def events_path(folder: Path) -> Path:
    """Where the events lie in a buffer's folder."""
    return folder / "events.jsonl"


@dataclass(frozen=True)
class RunBuffer:
    """A run's buffer, read on demand: `iterations` are those that have a snapshot, ascending, at least one."""

    folder: Path
    iterations: tuple[int, ...]
    files: Files = DISK
    bases: dict[Path, TaskBuffer] = field(default_factory=dict, compare=False, repr=False)
    """The snapshots that others build on, once they are read."""

    def at(self, iteration: int) -> TaskBuffer:
        """The buffer that `iteration` starts with. Raises `TaskBufferError` for a missing or damaged one."""
        return read_snapshot(self._path(iteration), self.files, self.bases)

    def header(self, iteration: int) -> Header:
        """What that snapshot says of itself, without reading it."""
        return read_header(self._path(iteration), self.files)

    @property
    def latest(self) -> TaskBuffer:
        """The buffer that the run ends with."""
        return self.at(self.iterations[-1])

    @cached_property
    def log(self) -> EventLog:
        """The events file; empty when the run has none."""
        path = events_path(self.folder)
        return read_events(path, self.files) if path.name in self.files.names(self.folder) else EventLog(())

    @property
    def events(self) -> tuple[Event, ...]:
        """Everything that happened, in order."""
        return self.log.events

    def events_before(self, iteration: int) -> tuple[Event, ...]:
        """What happened in the iterations before `iteration`, in order."""
        return tuple(event for event in self.events if event.iteration < iteration)

    def replay(self, iteration: int) -> TaskBuffer:
        """The buffer that the first snapshot's v0s and the events give for `iteration`."""
        return self.at(self.iterations[0]).origin().apply(self.events_before(iteration))

    def _path(self, iteration: int) -> Path:
        if iteration not in self.iterations:
            held = f"{self.iterations[0]} to {self.iterations[-1]}"
            raise TaskBufferError(f"{self.folder}: no snapshot of iteration {iteration} (there are {held})")
        return snapshot_path(self.folder, iteration)


def open_run(path: Path, files: Files = DISK) -> RunBuffer:
    """The buffer of the run in folder `path`, finished or on its way (the buffer's own folder will do).

    Raises `TaskBufferError` if it has none.
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


def _iterations(folder: Path, files: Files) -> tuple[int, ...]:
    found = (snapshot_iteration(name) for name in files.names(folder))
    return tuple(sorted(iteration for iteration in found if iteration is not None))


def natural(path: Path) -> list[tuple[int, str]]:
    """A sort key by which seed-2 comes before seed-10."""
    # re.split with a group alternates text and digits, so equal positions compare like with like.
    parts = re.split(r"(\d+)", path.as_posix())
    return [(int(part), "") if part.isdecimal() else (-1, part) for part in parts]
