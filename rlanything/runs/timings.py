"""Seconds per phase of a run, one row an iteration, in a file that belongs to no result.

A run on its way keeps the file in its folder; `keep` copies it to .rla/timings/ when the run is finished. How long
something took differs every time, so nothing here is part of runs/, of a fingerprint, or of what DVC compares.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rlanything.core.timing import Lap
from rlanything.files.records import read_lines, write_lines

FILE = "timing.jsonl"


def record(folder: Path, iteration: int, lap: Lap) -> None:
    """Add the row of an iteration; one that is there already is replaced."""
    rows = {row["iteration"]: row for row in read(folder / FILE)}
    rows[iteration] = _row(iteration, lap)
    write_lines(folder / FILE, [rows[k] for k in sorted(rows)])


def read(path: Path) -> list[dict[str, Any]]:
    """The rows of a file, in order; none where there is no file. An iteration's row is missing when it was killed."""
    return list(read_lines(path, "rlanything train")) if path.is_file() else []


def keep(folder: Path, place: Path) -> None:
    """Copy the rows of a finished run to `place`."""
    write_lines(place, read(folder / FILE))


def _row(iteration: int, lap: Lap) -> dict[str, Any]:
    """Seconds by phase on the clock and of CPU; `tokens`: how many this process trained on, padding not counted."""
    return {
        "iteration": iteration,
        "seconds": lap.total.wall,
        "cpu_seconds": lap.total.cpu,
        "phases": {
            name: {"seconds": spent.wall, "cpu_seconds": spent.cpu} for name, spent in lap.phases.items()
        },
        "tokens": lap.counts.get("tokens", 0),
    }
