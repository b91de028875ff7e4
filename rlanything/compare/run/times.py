"""Seconds of runs by phase, where this machine has them. They are no result: another machine has others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rlanything.compare.run.named import seed_of
from rlanything.compare.run.single import Single
from rlanything.files.records import is_number
from rlanything.report.formatting import NONE, code, markdown_table
from rlanything.rollouts.runs import NamedRun
from rlanything.runs import timings
from rlanything.runs.layout import Layout

WORDS = (
    "Mean wall-clock seconds an iteration, by phase, of the newest training of each seed on this machine. They differ "
    "from machine to machine and are no part of the result."
)


def times(found: Single) -> str:
    """The section; '' where no seed has times. Raises `FileError` for a file of times that cannot be read."""
    means = {seed_of(run): _means(_rows(run)) for run in found.runs}
    totals = {name: sum(of.get(name, 0.0) for of in means.values()) for of in means.values() for name in of}
    phases = sorted(totals, key=lambda name: (-totals[name], name))
    if not phases:
        return ""
    rows = [
        [str(seed), *(f"{of[name]:.1f}" if name in of else NONE for name in phases)]
        for seed, of in means.items()
    ]
    return f"### Seconds by phase\n\n{WORDS}\n\n{markdown_table(['seed', *map(code, phases)], rows)}"


def _rows(run: NamedRun) -> Sequence[Mapping[str, Any]]:
    """A finished run keeps its times beside the results, one in training in its folder."""
    folder = run.stored.folder
    place = Layout(run.root).timings(run.arm, seed_of(run)) if run.finished else folder / timings.FILE
    return timings.read(place)


def _means(rows: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    """Phase -> mean seconds over the iterations. Parts of a phase (`rollout/generate`) are left out."""
    sums: dict[str, float] = {}
    for row in rows:
        phases = row.get("phases")
        for name, spent in phases.items() if isinstance(phases, dict) else ():
            seconds = spent.get("seconds") if isinstance(spent, dict) else None
            if "/" not in name and isinstance(seconds, (int, float)) and is_number(seconds):
                sums[name] = sums.get(name, 0.0) + seconds
    return {name: total / len(rows) for name, total in sums.items()}
