"""What a process of a seed does with the loggers of its configuration."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rlanything.config import parse
from rlanything.runs import trackers

STEPS = 31


def copy_metrics(data: dict[str, Any], root: Path, seed: int) -> None:
    """Log as many iterations as a run has, and end as Lightning's trainer does."""
    config = parse(data)
    (logger,) = trackers.make_loggers(config, root, "full", seed)
    logger.log_hyperparams(trackers.hyperparameters(config, "full", seed))
    for step in range(STEPS):
        logger.log_metrics({f"metric/{k}": seed + step / 100 for k in range(60)}, step=step)
    logger.finalize("success")
