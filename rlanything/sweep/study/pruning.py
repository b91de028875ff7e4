"""The declared pruner as Optuna's."""

from __future__ import annotations

import optuna

from rlanything.sweep.declare.sweep import Pruner


def make_pruner(declared: Pruner) -> optuna.pruners.BasePruner:
    """`median` gives up a trial whose best point so far is below the median of the others at the same point.

    `wilcoxon` gives up one that is worse than the best trial over all points so far (signed-rank test at 10 %).
    """
    if declared.kind == "median":
        return optuna.pruners.MedianPruner(n_startup_trials=3, n_warmup_steps=declared.warmup)
    if declared.kind == "wilcoxon":
        return optuna.pruners.WilcoxonPruner(p_threshold=0.1, n_startup_steps=declared.warmup)
    return optuna.pruners.NopPruner()
