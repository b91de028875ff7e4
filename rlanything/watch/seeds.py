"""One seed of an arm, in training or finished, as its files say."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rlanything.files.project import PRIVATE
from rlanything.runs import timings
from rlanything.runs.progress import heartbeat
from rlanything.runs.resuming import origins
from rlanything.watch import tolerant
from rlanything.watch.holders import Holder, holder
from rlanything.watch.tolerant import Row, number_at

RUNNING, WAITING, STOPPED, DONE, FINISHED = "running", "waiting", "stopped", "done", "finished"
"""In training; not yet begun; nobody trains it; done, while other seeds of the arm are not; in runs/."""
_NUMBER = re.compile(r"\d{4,9}")
_MOST_TOTAL = 10**9
MOST_SEEDS = 1000
"""Seeds of an arm that are looked at. No experiment has more; a stranger's configuration may say anything."""
RECENT = 10
"""Iterations whose times count for what is left: enough to hold one that measures panels."""


@dataclass(frozen=True)
class Now:
    """Where a seed is inside an iteration. since: when the phase began; at: when that was written (of the epoch)."""

    iteration: int
    phase: str
    calls: int
    since: float
    at: float


@dataclass(frozen=True)
class Seed:
    """One seed. total: the number of its last iteration, None where nothing says so. rows: its iterations' metrics.

    laps: their times. changed: when its newest file was written. root: its project.
    """

    root: Path
    folder: Path
    state: str
    total: int | None
    rows: tuple[Row, ...]
    laps: tuple[Mapping[str, Any], ...]
    changed: float
    now: Now | None = None
    holder: Holder | None = None
    panel_tasks: int | None = None
    """Tasks of a panel that are measured while it trains."""

    @property
    def arm(self) -> str:
        """The name of its arm, which is that of the folder around it."""
        return self.folder.parent.name

    @property
    def name(self) -> str:
        """Arm and seed, e.g. full/seed-0."""
        return f"{self.arm}/{self.folder.name}"

    @property
    def share(self) -> float:
        """How much of it is done, 0 to 1."""
        if self.state in (DONE, FINISHED):
            return 1.0
        return 0.0 if self.total is None else min(1.0, len(self.rows) / (self.total + 1))

    @property
    def pace(self) -> float | None:
        """Mean seconds of its last iterations; None before the first one is timed."""
        found = [s for lap in self.laps[-RECENT:] if (s := number_at(lap, "seconds")) is not None]
        return sum(found) / len(found) if found else None

    def left(self, pace: float | None = None) -> float | None:
        """Seconds until it is finished. pace: seconds of an iteration, where its own are not known yet."""
        each = self.pace if self.pace is not None else pace
        if self.state in (DONE, FINISHED):
            return 0.0
        if each is None or self.total is None:
            return None
        begun = time.time() - self.changed if self.state == RUNNING and self.rows else 0.0
        return max(0.0, each * (self.total + 1 - len(self.rows)) - min(max(begun, 0.0), each))


def live(root: Path, folder: Path, stage_runs: bool) -> Seed:
    """A seed in a live folder. stage_runs: whether somebody trains the arm, so that it may wait for its turn."""
    names = _names(folder / "iterations")
    paths = [folder / "iterations" / name / "metrics.json" for name in names]
    config = tolerant.mapping(folder.parent / origins.FILE).get("config")
    held = holder(folder / "lock")
    state = RUNNING if held else WAITING if stage_runs else STOPPED
    if (folder / "finished").is_dir():
        state = DONE
    files = [folder / timings.FILE, *paths[-1:]]
    return Seed(
        root, folder, state, _total(number_at(config, "train", "iterations")),
        tuple(tolerant.metrics_of(path) for path in paths), tuple(tolerant.lines(folder / timings.FILE)),
        max(_changed(path) for path in (files if paths else [folder])), _now(folder), held,
        _total(number_at(config, "evaluate", "curve_tasks")),
    )  # fmt: skip


def declared(arm: Path) -> int:
    """How many seeds the training in an arm's live folder has, those included that have not begun."""
    config = tolerant.mapping(arm / origins.FILE).get("config")
    return min(_total(number_at(config, "train", "seeds")) or 0, MOST_SEEDS)


def finished(root: Path, folder: Path) -> Seed:
    """A seed below runs/, with the times of the newest run of its name where it was trained here."""
    kept = root / PRIVATE / "timings" / folder.parent.name / f"{folder.name}.jsonl"
    rows = tuple(map(tolerant.numbers, tolerant.lines(folder / "metrics.jsonl")))
    total, changed = len(rows) - 1 if rows else None, _changed(folder / "metrics.jsonl")
    return Seed(root, folder, FINISHED, total, rows, tuple(tolerant.lines(kept)), changed)


def _names(folder: Path) -> list[str]:
    try:
        return sorted((p.name for p in folder.iterdir() if _NUMBER.fullmatch(p.name)), key=int)
    except OSError:
        return []


def _now(folder: Path) -> Now | None:
    found = tolerant.mapping(folder / heartbeat.FILE)
    values = [number_at(found, key) for key in ("iteration", "calls", "since", "at")]
    phase = found.get("phase")
    if not isinstance(phase, str) or any(value is None for value in values):
        return None
    iteration, calls, since, at = (value or 0.0 for value in values)
    return Now(int(iteration), phase[:40], int(calls), since, at)


def _total(found: float | None) -> int | None:
    return int(found) if found is not None and 0 < found < _MOST_TOTAL else None


def _changed(path: Path) -> float:
    with suppress(OSError):
        return path.stat().st_mtime
    return 0.0
