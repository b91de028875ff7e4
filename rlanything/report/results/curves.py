"""Reads runs/<arm>/seed-<n>/metrics.jsonl into curves, and finds their means over seeds and their peaks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from rlanything.core.types import Json
from rlanything.files.reader import FileError, parse, read_bytes
from rlanything.files.records import metric_of, whole_metric
from rlanything.report.results.arms import ordered
from rlanything.report.results.evaluations import ReportError
from rlanything.report.results.metrics import Metric

TRAIN = "dvc repro train"
MOST_ITERATIONS = 10**9
"""The largest number of an iteration: no run comes near."""
RECENT = 5
"""Iterations that count as the start of a run, and as its end."""

Series = dict[int, float]
"""iteration -> value, in order of iterations; values that were not measured (missing, null, NaN) have no entry."""
Run = dict[str, Series]
"""Key of metrics.jsonl -> its series, for one seed of one arm."""
Curves = dict[str, dict[int, Run]]
"""arm -> seed -> run."""


@dataclass(frozen=True)
class Peak:
    """The best point of an arm's curve: the mean over seeds on the small panel that is measured while training."""

    value: float
    iteration: int
    last: float


Peaks = Mapping[str, Mapping[str, Peak]]
"""arm -> name of a metric -> peak; what has no curve is absent."""


def read_curves(root: Path, arms: Iterable[str]) -> Curves:
    """Every runs/<arm>/seed-<n>/metrics.jsonl of `arms`; arms without one are left out. Raises `ReportError`."""
    found = {arm: _runs(root / "runs" / arm, root) for arm in ordered(arms)}
    return {arm: runs for arm, runs in found.items() if runs}


def _runs(folder: Path, root: Path) -> dict[int, Run]:
    found = {path.parent.name.removeprefix("seed-"): path for path in folder.glob("seed-*/metrics.jsonl")}
    seeds = {int(number): path for number, path in found.items() if number.isdecimal()}
    return {seed: _run(seeds[seed], root) for seed in sorted(seeds)}


def _run(path: Path, root: Path) -> Run:
    """The series of one metrics.jsonl. A later line of the same iteration wins (a resumed run may repeat one)."""
    name = path.relative_to(root)
    lines: dict[int, dict[str, float]] = {}
    for number, line in enumerate(read_bytes(path).splitlines(), start=1):
        if line.strip():
            iteration, values = _line(line, f"{name}, line {number}")
            lines[iteration] = values
    return _series(lines)


def _line(line: bytes, where: str) -> tuple[int, dict[str, float]]:
    """The iteration of a line, and what it measured. Raises `ReportError`."""
    try:
        record = parse(line)
    except FileError as error:
        raise ReportError(f"{where}: not valid JSON ({error}); make it again with `{TRAIN}`") from None
    if not isinstance(record, dict) or not isinstance(record.get("iteration"), int):
        raise ReportError(f"{where}: no iteration number; make it again with `{TRAIN}`")
    try:
        return whole_metric(record, "iteration", where, MOST_ITERATIONS), _measured(record, where)
    except FileError as error:
        raise ReportError(f"{error}; make it again with `{TRAIN}`") from None


def _measured(record: Mapping[str, Json], where: str) -> dict[str, float]:
    """The numbers of a row; texts are none. Raises `FileError` for a number that no run writes."""
    found = {}
    for key, value in record.items():
        if key == "iteration" or not isinstance(value, int | float):
            continue
        number = metric_of(record, key, where)
        if number is not None:
            found[key] = float(number)
    return found


def _series(lines: Mapping[int, Mapping[str, float]]) -> Run:
    run: Run = {}
    for iteration in sorted(lines):
        for key, value in lines[iteration].items():
            run.setdefault(key, {})[iteration] = value
    return run


def mean_series(runs: Mapping[int, Run], key: str) -> Series:
    """iteration -> mean over seeds, at the iterations that every seed of the arm has measured."""
    series = [run.get(key, {}) for run in runs.values()]
    shared = sorted(set(series[0]).intersection(*series[1:])) if series else []
    return {i: float(np.mean([s[i] for s in series])) for i in shared}


def ends(runs: Mapping[int, Run], key: str) -> tuple[float, float] | None:
    """The mean of the first and of the last `RECENT` values, mean over seeds. None where nothing was measured."""
    series = [list(run[key].values()) for run in runs.values() if run.get(key)]
    if not series:
        return None
    start, end = ([float(np.mean(s[part])) for s in series] for part in (slice(RECENT), slice(-RECENT, None)))
    return float(np.mean(start)), float(np.mean(end))


def total(run: Run, key: str) -> float:
    """The sum of a metric over the iterations; 0 where it was not measured."""
    return sum(run.get(key, {}).values())


def peaks(curves: Curves, metrics: Sequence[Metric]) -> dict[str, dict[str, Peak]]:
    """arm -> name of a metric -> peak, for those of `metrics` that have a curve."""
    found = {arm: {m.name: p for m in metrics if (p := _peak(runs, m))} for arm, runs in curves.items()}
    return {arm: row for arm, row in found.items() if row}


def _peak(runs: Mapping[int, Run], metric: Metric) -> Peak | None:
    series = mean_series(runs, metric.curve)
    if len(series) < 2:  # a single measurement is no curve
        return None
    best = max(series, key=lambda i: (series[i], -i))
    return Peak(series[best], best, series[max(series)])
