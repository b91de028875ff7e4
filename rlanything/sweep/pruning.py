"""Giving up a trial early, from the curves that are measured while it trains.

A trial's curve is that of its seeds, one after the other: point k of seed s is compared with point k of seed s of the
other trials, which met the same draws. The point before any training is left out: it is the same in every trial.
"""

from __future__ import annotations

import json
from pathlib import Path

import optuna

from rlanything.sweep.declare import Pruner


def pruner(declared: Pruner) -> optuna.pruners.BasePruner:
    """Optuna's pruner for what is declared.

    `median` gives up a trial whose best point so far is below the median of the others at the same point; `wilcoxon`
    one that is worse than the best trial over all points so far, by a signed-rank test at 10 %.
    """
    if declared.kind == "median":
        return optuna.pruners.MedianPruner(n_startup_trials=3, n_warmup_steps=declared.warmup)
    if declared.kind == "wilcoxon":
        return optuna.pruners.WilcoxonPruner(p_threshold=0.1, n_startup_steps=declared.warmup)
    return optuna.pruners.NopPruner()


def curve(seeds: list[Path], metric: str) -> list[float]:
    """The points measured so far, seed after seed, up to the first seed that is not finished.

    Args:
        seeds: the seeds' live folders, in order; those that have not begun need not exist.
        metric: one of `declare.CURVES`.
    """
    points: list[float] = []
    for seed in seeds:
        for file in sorted((seed / "iterations").glob("[0-9]*/metrics.json")):
            row = json.loads(file.read_text())
            value = row.get(f"panel/{metric}")
            if value is not None and row["iteration"] > 0:
                points.append(float(value))
        if not (seed / "finished").is_dir():
            break
    return points
