"""The task buffer of a whole run: one snapshot an iteration and the events between them, in one folder.

    runs/<arm>/seed-<n>/buffer/iter_0000.jsonl ... iter_NNNN.jsonl events.jsonl

`iter_N` is the buffer as iteration N left it: the v0s with every event of an iteration up to N applied.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from rlanything.buffer.event import Event
from rlanything.buffer.fields import BufferError
from rlanything.buffer.model import TaskBuffer
from rlanything.buffer.storage import (
    EventLog,
    Header,
    append_events,
    read_events,
    read_header,
    read_snapshot,
    write_snapshot,
)

FOLDER = "buffer"
"""Name of the buffer's folder in the folder of a run."""
_SNAPSHOT_NAME = re.compile(r"iter_(\d{4,})\.jsonl")
_DEPTH = 6
"""How many folders deep `find_runs` looks; a run lies two below `runs/`."""


def snapshot_path(folder: Path, iteration: int) -> Path:
    """Where the snapshot of an iteration lies in a buffer's folder."""
    return folder / f"iter_{iteration:04d}.jsonl"


def events_path(folder: Path) -> Path:
    """Where the events lie in a buffer's folder."""
    return folder / "events.jsonl"


def record_iteration(folder: Path, iteration: int, buffer: TaskBuffer, events: Sequence[Event]) -> None:
    """Write what an iteration left: its events first, then its snapshot, which says that they are complete.

    A run that starts again after a crash calls `rewind_events` once before it goes on.
    """
    strangers = sorted({event.iteration for event in events} - {iteration})
    if strangers:
        raise BufferError(f"events of iteration {strangers[0]} cannot be recorded with iteration {iteration}")
    append_events(events_path(folder), events)
    write_snapshot(buffer, snapshot_path(folder, iteration))


@dataclass(frozen=True)
class RunBuffer:
    """A run's buffer, read on demand: `iterations` are those that have a snapshot, ascending, at least one."""

    folder: Path
    iterations: tuple[int, ...]

    def at(self, iteration: int) -> TaskBuffer:
        """The buffer as `iteration` left it. Raises `BufferError` when there is no such snapshot or it is damaged."""
        return read_snapshot(self._path(iteration))

    def header(self, iteration: int) -> Header:
        """What that snapshot says of itself, without reading it."""
        return read_header(self._path(iteration))

    @property
    def latest(self) -> TaskBuffer:
        """The buffer as the last recorded iteration left it."""
        return self.at(self.iterations[-1])

    @cached_property
    def log(self) -> EventLog:
        """The events file; empty when the run has none."""
        path = events_path(self.folder)
        return read_events(path) if path.exists() else EventLog(())

    @property
    def events(self) -> tuple[Event, ...]:
        """Everything that happened, in order."""
        return self.log.events

    def events_until(self, iteration: int) -> tuple[Event, ...]:
        """What happened up to and including `iteration`, in order."""
        return tuple(event for event in self.events if event.iteration <= iteration)

    def replay(self, iteration: int) -> TaskBuffer:
        """The buffer that the first snapshot's v0s and the events give for `iteration`."""
        return self.at(self.iterations[0]).origin().apply(self.events_until(iteration))

    def _path(self, iteration: int) -> Path:
        if iteration not in self.iterations:
            held = f"{self.iterations[0]} to {self.iterations[-1]}"
            raise BufferError(f"{self.folder}: no snapshot of iteration {iteration} (there are {held})")
        return snapshot_path(self.folder, iteration)


def open_run(path: Path) -> RunBuffer:
    """The buffer of the run in folder `path` (the buffer's own folder will do). Raises `BufferError` if it has none."""
    if not path.is_dir():
        raise BufferError(f"{path}: no such folder")
    for folder in (path / FOLDER, path):
        iterations = _iterations(folder)
        if iterations:
            return RunBuffer(folder, iterations)
    if (path / FOLDER).is_dir():
        raise BufferError(f"{path / FOLDER}: empty, it has no snapshot iter_0000.jsonl")
    raise BufferError(f"{path}: no buffer there")


def find_runs(root: Path) -> list[Path]:
    """The folders of the runs at or below `root` that have a buffer, sorted by name, numbers by value."""
    found: list[Path] = []
    for name, folders, _ in os.walk(root):
        here = Path(name)
        if _iterations(here / FOLDER) or _iterations(here):
            found.append(here)
            folders.clear()
        if len(here.relative_to(root).parts) >= _DEPTH:
            folders.clear()
        folders[:] = [folder for folder in folders if not folder.startswith(".")]
    return sorted(found, key=_natural)


def _iterations(folder: Path) -> tuple[int, ...]:
    if not folder.is_dir():
        return ()
    names = (_SNAPSHOT_NAME.fullmatch(name) for name in os.listdir(folder))
    return tuple(sorted(int(match[1]) for match in names if match))


def _natural(path: Path) -> list[tuple[int, str]]:
    # re.split with a group alternates text and digits, so equal positions compare like with like.
    parts = re.split(r"(\d+)", path.as_posix())
    return [(int(part), "") if part.isdecimal() else (-1, part) for part in parts]
