"""What a trial achieved: means with intervals, and differences from another trial.

Statistics are the report's: crossed effects of seeds and tasks (`report.results.statistics`). Seed n has the same
random draws in every trial, so trials are compared in pairs of seed and task.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from rlanything.files.reader import read_object
from rlanything.files.records import read_metrics
from rlanything.report.results import statistics
from rlanything.report.results.evaluations import read_evaluation
from rlanything.report.results.statistics import Contrast, Estimate, Panel
from rlanything.sweep.declare.metrics import COST


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
        panel = self.panels[arm].get(metric)
        return None if panel is None else statistics.estimate(panel)

    def error(self, goal: tuple[str, str]) -> float:
        """Standard error of an objective's mean, from the spread over seeds and over tasks; 0 where there is none.

        Not half of an interval over 1.96: intervals use Student's t, which is 4.30 with three seeds.
        """
        arm, metric = goal
        return statistics.standard_error(self.panels[arm][metric])

    def above(self, other: Measured, goal: tuple[str, str]) -> Contrast | None:
        """This trial minus another one, paired by seed and task."""
        arm, metric = goal
        mine, theirs = self.panels[arm].get(metric), other.panels[arm].get(metric)
        if mine is None or theirs is None:
            return None
        return statistics.contrast(mine, theirs)


def measure(trial: Path, arms: Sequence[str]) -> Measured:
    """Read a finished trial from its folder (`evaluation/<arm>.json`, `runs/<arm>/seed-<n>/metrics.jsonl`)."""
    found: dict[str, dict[str, Panel]] = {}
    coverage: dict[str, float | None] = {}
    for arm in arms:
        panels = read_evaluation(trial / "evaluation" / f"{arm}.json", arm)
        seeds = sorted({seed for panel in panels.values() for seed in panel.seeds})
        runs = {seed: rows(trial / "runs" / arm / f"seed-{seed}") for seed in seeds}
        found[arm] = {**panels, COST: _cost_panel(runs)}
        shares = [
            r["band_coverage"] for run in runs.values() for r in run if r.get("band_coverage") is not None
        ]
        coverage[arm] = float(np.mean(shares)) if shares else None
    return Measured(found, coverage)


def rows(run: Path) -> list[dict[str, Any]]:
    """The lines of a run's metrics.jsonl."""
    return read_metrics(run / "metrics.jsonl")


def cost(run: Sequence[Mapping[str, Any]]) -> float:
    """Replies sampled in a run: the policy's turns, and the reward model's votes or tests."""
    total = 0.0
    for row in run:
        episodes = row.get("status/ok", 0.0) + row.get("status/truncated", 0.0)
        judged = (row.get("votes") or 0.0) + (row.get("tests") or 0.0)
        total += episodes * (row.get("episode_steps") or 0.0) + judged
    return round(total)


def _cost_panel(runs: Mapping[int, Sequence[Mapping[str, Any]]]) -> Panel:
    hits = np.array([[[cost(run)] for run in runs.values()]], dtype=np.float64)
    return Panel(tuple(runs), ("run",), hits, np.ones_like(hits), (0.0, float("inf")))


def training_curve(seeds: Sequence[Path], metric: str) -> list[float]:
    """The points that a pruner compares: seed after seed, up to the first seed that is not finished.

    Point k of seed s has the same random draws in every trial. The point before training is left out: it is the same
    in every trial.

    Args:
        seeds: the seeds' live folders, in order; those that have not begun need not exist.
        metric: one of `declare.metrics.CURVES`.
    """
    points: list[float] = []
    for seed in seeds:
        for file in sorted((seed / "iterations").glob("[0-9]*/metrics.json")):
            row = read_object(file)
            value = row.get(f"panel/{metric}")
            if value is not None and row["iteration"] > 0:
                points.append(float(value))
        if not (seed / "finished").is_dir():
            break
    return points
