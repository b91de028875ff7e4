"""A run on disk: an iteration is a commit.

    <run>/lock                     held by the process that works here (its pid and host inside)
    <run>/iterations/0007/         published by one rename: metrics.json, events.jsonl, buffer.jsonl, rollouts.jsonl.gz,
                                   tests.jsonl.gz where the reward model writes tests, and, for the last one only,
                                   state.ckpt (both models, both optimizers, loop state)

    <run>/finished/                the whole run as DVC tracks it, once it is over

When every seed of an arm is finished, `place` copies them all to runs/<arm>/ with one rename. Not earlier: DVC empties
a stage's outputs before it runs the stage again, so what is there when a stage is killed would be lost.
"""

from __future__ import annotations

import errno
import json
import math
import shutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from rlanything.buffer import TaskBuffer, append_events, read_events, read_snapshot, write_snapshot
from rlanything.core.types import Json
from rlanything.files import atomic, locks
from rlanything.files.atomic import write_text
from rlanything.files.records import write_json, write_lines
from rlanything.loop.iteration import IterationResult

STATE = "state.ckpt"
RECORD = ".jsonl.gz"
"""How the names of an iteration's records end; in a finished run, each has a folder."""
ORPHANS = 10.0
"""Seconds that a seed's folder is waited for: what a killed run's processes need at most to be gone."""


class RunFolder:
    """The live folder of one arm and seed."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.iterations = path / "iterations"

    def lock(self) -> AbstractContextManager[None]:
        """Hold the folder. Raises `ConfigError` naming the holder when another process has it."""
        atomic.make(self.path)
        return locks.held(self.path / "lock", f"{self.path}: another process trains here", ORPHANS)

    def recover(self) -> int:
        """Remove what a killed process left half-written; returns the number of published iterations."""
        atomic.make(self.iterations)
        for leftover in self.iterations.glob(".*"):
            atomic.clear(leftover)
        return len(self.published())

    def published(self) -> list[Path]:
        """Folders of the published iterations, in order."""
        return sorted(p for p in self.iterations.glob("[0-9]*") if p.is_dir())

    def publish(self, iteration: int, write: Callable[[Path], None]) -> None:
        """Write an iteration beside its place, sync every file, rename; the older state file is then dropped."""
        place = self.iterations / f"{iteration:04d}"
        if place.exists():
            raise FileExistsError(errno.EEXIST, "this iteration is published already", str(place))
        with atomic.whole(place) as folder:
            write(folder)
        for older in self.published()[:-1]:
            (older / STATE).unlink(missing_ok=True)

    def state_file(self) -> Path | None:
        """The checkpoint to continue from, or None for a fresh start."""
        done = self.published()
        return done[-1] / STATE if done else None

    def buffer(self, iteration: int) -> TaskBuffer:
        """The buffer as it was after `iteration`."""
        return read_snapshot(self.iterations / f"{iteration:04d}" / "buffer.jsonl")

    def metrics(self) -> list[dict[str, Any]]:
        """The rows of the published iterations."""
        return [json.loads((p / "metrics.json").read_text()) for p in self.published()]

    @property
    def finished(self) -> Path:
        """The finished run; there whole or not at all."""
        return self.path / "finished"

    def export(self, start: TaskBuffer, finish: Callable[[Path], None]) -> None:
        """Write `finished` with one rename; `finish(folder)` adds what belongs to it besides the iterations."""
        if self.finished.is_dir():
            return
        with atomic.whole(self.finished) as folder:
            self._export(folder, start)
            finish(folder)

    def _export(self, temporary: Path, start: TaskBuffer) -> None:
        (temporary / "buffer").mkdir()
        write_snapshot(start, temporary / "buffer" / "iter_0000.jsonl")
        events = temporary / "buffer" / "events.jsonl"
        append_events(events, [])
        for k, folder in enumerate(self.published(), 1):
            shutil.copyfile(folder / "buffer.jsonl", temporary / "buffer" / f"iter_{k:04d}.jsonl")
            append_events(events, read_events(folder / "events.jsonl").events)
            for record in folder.glob(f"*{RECORD}"):
                place = temporary / record.name.removesuffix(RECORD)
                place.mkdir(exist_ok=True)
                shutil.copyfile(record, place / f"iter_{k:04d}{RECORD}")
        rows = "".join(json.dumps(row, sort_keys=True) + "\n" for row in self.metrics())
        write_text(temporary / "metrics.jsonl", rows)


def place(runs: Sequence[RunFolder], target: Path) -> None:
    """Copy the finished runs to `target`, which then holds all of them and nothing else, or what it held before."""
    with atomic.whole(target) as folder:
        for run in runs:
            atomic.copy_tree(run.finished, folder / run.path.name)


def write_iteration_files(
    folder: Path,
    result: IterationResult,
    metrics: dict[str, Any],
    start: TaskBuffer,
    records: Mapping[str, Iterable[Json]],
) -> None:
    """The files of one iteration, except its checkpoint; of the buffer, what differs from `start`.

    records: what is stored of the rollouts, by the name of the file.
    """
    write_json(folder / "metrics.json", {k: _plain(v) for k, v in sorted(metrics.items())})
    append_events(folder / "events.jsonl", result.events)
    write_snapshot(result.state.buffer, folder / "buffer.jsonl", start)
    for name, lines in records.items():
        write_lines(folder / f"{name}{RECORD}", lines)


def _plain(value: Any) -> Any:
    """JSON has neither nan nor infinity: what was not measured, or has no bound, is null."""
    return None if isinstance(value, float) and not math.isfinite(value) else value
