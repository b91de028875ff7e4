"""Seconds per phase of a run, one row an iteration. The file is not a result.

An unfinished run has the file in its live folder. `keep` copies it to .rla/timings/ when the run is finished. Times
differ in every run, so they are not part of runs/, of a fingerprint, or of what DVC compares.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rlanything.core.timing import Lap
from rlanything.files.records import read_lines, write_lines

FILE = "timing.jsonl"
SAMPLING = ("rollout/generate", "judge/generate", "ahead/rollout/generate")
"""The phases in which `policy_tokens` and `reward_tokens` are sampled; `ahead`: those of the iteration after."""


def record(folder: Path, iteration: int, lap: Lap) -> None:
    """Add the row of an iteration, or replace it."""
    rows = {one["iteration"]: one for one in read(folder / FILE)}
    rows[iteration] = row(iteration, lap)
    write_lines(folder / FILE, [rows[k] for k in sorted(rows)])


def read(path: Path) -> list[dict[str, Any]]:
    """The rows of a file, in order; [] where there is no file.

    A row is missing if the run was killed before it was written.
    """
    return list(read_lines(path, "rlanything train")) if path.is_file() else []


def keep(folder: Path, place: Path) -> None:
    """Copy the rows of a finished run to `place`."""
    write_lines(place, read(folder / FILE))


def tokens_per_second(row: Mapping[str, Any], metrics: Mapping[str, Any]) -> float | None:
    """Tokens that the models of an iteration sampled, by the seconds in which they did; None where none were.

    row: its times. metrics: its metrics.
    """
    tokens = sum(metrics.get(name) or 0.0 for name in ("policy_tokens", "reward_tokens"))
    phases = row.get("phases", {})
    seconds = sum(phases[name]["seconds"] for name in SAMPLING if name in phases)
    return float(tokens / seconds) if tokens and seconds else None


def row(iteration: int, lap: Lap) -> dict[str, Any]:
    """Wall-clock and CPU seconds by phase. `tokens`: how many tokens this process trained on, without padding."""
    return {
        "iteration": iteration,
        "seconds": lap.total.wall,
        "cpu_seconds": lap.total.cpu,
        "phases": {
            name: {"seconds": spent.wall, "cpu_seconds": spent.cpu} for name, spent in lap.phases.items()
        },
        "tokens": lap.counts.get("tokens", 0),
    }
