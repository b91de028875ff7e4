"""What a trial achieved: means with intervals, and differences from another trial.

Statistics are the report's: crossed effects of seeds and tasks (`report.results.statistics`). Seed n has the same
random draws in every trial, so trials are compared in pairs of seed and task.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from rlanything.core.types import Json
from rlanything.files.reader import read_object
from rlanything.files.records import metric_of, read_metrics, whole_metric
from rlanything.report.results import statistics
from rlanything.report.results.evaluations import read_evaluation
from rlanything.report.results.statistics import COUNTS, SHARES, Contrast, Estimate, Panel, seed_means
from rlanything.sweep.declare.metrics import COST, has_curve

CURVE = "panel/"
"""Begins the keys of metrics.jsonl with points of curves."""


@dataclass(frozen=True)
class Measured:
    """A finished trial: arm -> metric -> panel, and how its training went (means over seeds and iterations)."""

    panels: Mapping[str, Mapping[str, Panel]]
    band_coverage: Mapping[str, float | None]

    def at(self, seeds: Sequence[int]) -> Measured:
        """The results on some of its seeds."""
        reduced = {
            arm: {
                metric: panel.at([s for s in seeds if s in panel.seeds], panel.tasks)
                for metric, panel in of.items()
            }
            for arm, of in self.panels.items()
        }
        return Measured(reduced, self.band_coverage)

    def estimate(self, goal: tuple[str, str]) -> Estimate | None:
        """Mean and interval of one objective."""
        arm, metric = goal
        return statistics.estimate(self.panels[arm].get(metric))

    def error(self, goal: tuple[str, str]) -> float:
        """Standard error of an objective's mean, from the spread over seeds and over tasks; 0 where there is none.

        Not half of an interval over 1.96: intervals use Student's t, which is 4.30 with three seeds.
        """
        arm, metric = goal
        return statistics.standard_error(self.panels[arm][metric])

    def above(self, other: Measured, goal: tuple[str, str]) -> Contrast | None:
        """This trial minus another one, paired by seed and task. Without p where both have the same results."""
        arm, metric = goal
        mine, theirs = self.panels[arm].get(metric), other.panels[arm].get(metric)
        if mine is None or theirs is None:
            return None
        return statistics.tested(mine, theirs)


def measure(trial: Path, arms: Sequence[str], last: int = 0) -> Measured:
    """Read a finished trial from its folder (`evaluation/<arm>.json`, `runs/<arm>/seed-<n>/metrics.jsonl`).

    last: shares are the mean of so many last points of the learning curves instead; 0: those of the evaluation.
    """
    found: dict[str, dict[str, Panel]] = {}
    coverage: dict[str, float | None] = {}
    for arm in arms:
        panels = read_evaluation(trial / "evaluation" / f"{arm}.json", arm)
        seeds = sorted({seed for panel in panels.values() for seed in panel.seeds})
        runs = {seed: rows(trial / "runs" / arm / f"seed-{seed}") for seed in seeds}
        if last:
            panels = {name: p for name, p in panels.items() if not has_curve(name)} | curve_panels(runs, last)
        costs = seed_means({seed: [cost(run)] for seed, run in runs.items()}, COUNTS)
        found[arm] = panels if costs is None else {**panels, COST: costs}
        covered = [row.get("band_coverage") for run in runs.values() for row in run]
        shares = [share for share in covered if share is not None]
        coverage[arm] = float(np.mean(shares)) if shares else None
    return Measured(found, coverage)


def rows(run: Path) -> list[dict[str, float | None]]:
    """The lines of a run's metrics.jsonl: numbers, or None for what was not measured. Raises `FileError`."""
    path = run / "metrics.jsonl"
    return [_measured(row, f"{path}:{number}") for number, row in enumerate(read_metrics(path), 1)]


def _measured(row: Mapping[str, Json], where: str) -> dict[str, float | None]:
    return {key: metric_of(row, key, where) for key in row} | {
        "iteration": whole_metric(row, "iteration", where)
    }


def cost(run: Sequence[Mapping[str, Any]]) -> float:
    """Replies sampled in a run: the policy's turns, and the reward model's votes or tests."""
    total = 0.0
    for row in run:
        episodes = (row.get("status/ok") or 0.0) + (row.get("status/truncated") or 0.0)
        judged = (row.get("votes") or 0.0) + (row.get("tests") or 0.0)
        total += episodes * (row.get("episode_steps") or 0.0) + judged
    return round(total)


def curve_panels(runs: Mapping[int, Sequence[Mapping[str, Any]]], last: int) -> dict[str, Panel]:
    """Name of a metric -> the mean of the last `last` points of its curve, for every seed; the start is no point.

    A metric without so many points in every seed is absent. Tasks are not kept apart, so that intervals come from the
    spread between seeds.
    """
    found = {}
    for metric in _curves(runs):
        every = {seed: [v for v in curve_points(run, metric) if v is not None] for seed, run in runs.items()}
        points = {seed: values[-last:] for seed, values in every.items()}
        whole = all(len(values) == last for values in points.values())
        means = {seed: [float(np.mean(values))] for seed, values in points.items() if whole}
        if (panel := seed_means(means, SHARES)) is not None:
            found[metric] = panel
    return found


def _curves(runs: Mapping[int, Sequence[Mapping[str, Any]]]) -> list[str]:
    """The metrics that have a point in some run."""
    keys = {key for run in runs.values() for row in run for key in row}
    return sorted(key.removeprefix(CURVE) for key in keys if key.startswith(CURVE))


def curve_points(run: Iterable[Mapping[str, Any]], metric: str) -> list[float | None]:
    """The points of a curve after the start of training, in order; `run`: lines of metrics.jsonl.

    None: a point at which there was nothing to measure, as no pair of steps. It keeps its place.
    """
    key = f"{CURVE}{metric}"
    points = [row[key] for row in run if row["iteration"] > 0 and key in row]
    return [None if value is None else float(value) for value in points]


def training_curve(seeds: Sequence[Path], name: str) -> list[float | None]:
    """The points that a pruner compares: seed after seed, up to the first seed that is not finished.

    Point k of seed s has the same random draws in every trial. The point before training is left out: it is the same
    in every trial.

    Args:
        seeds: the seeds' live folders, in order; those that have not begun need not exist.
        name: that of a metric with a curve (`declare.metrics.has_curve`).
    """
    points: list[float | None] = []
    for seed in seeds:
        if (seed / "finished").is_dir():  # one that was taken over has no other files
            points += curve_points(rows(seed / "finished"), name)
            continue
        files = sorted((seed / "iterations").glob("[0-9]*/metrics.json"))
        points += curve_points((_measured(read_object(file), str(file)) for file in files), name)
        break
    return points


def finished_curve(runs: Sequence[Path], name: str) -> list[float | None]:
    """The same points as `training_curve`, of seeds that are all finished; runs: their folders in order."""
    return [point for run in runs for point in curve_points(rows(run), name)]
