"""Seconds of a whole iteration, and where they go: a run of one seed in a temporary folder, which times itself."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from benchmarks.machine import Measured
from rlanything.config import Config
from rlanything.core.errors import ConfigError
from rlanything.runs import timings
from rlanything.runs.layout import Layout
from rlanything.runs.parts import RunId
from rlanything.runs.seedrun import SeedRun

ARM = "full"
ITERATIONS = 2
"""The second one is reported: it also rolls out what was proposed in the first."""
PARTS = ("rollout", "judge", "adapt", "learn", "publish")


def measure_iteration(config: Config, root: Path) -> tuple[Measured, Measured]:
    """The parts `training` and `iteration` of bench.json. Raises `ConfigError` where there is nothing to run."""
    layout = Layout(root)
    if not (layout.manifest.is_file() and layout.bootstrap.is_file()):
        raise ConfigError("data/ or models/ are missing (make them with `dvc repro bootstrap`)")
    if ARM not in config.arms:
        raise ConfigError(f"the configuration has no arm {ARM!r}")
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        for name in ("data", "models", "experiments"):
            (place / name).symlink_to(root / name)
        SeedRun(_short(config), RunId(place, ARM, 0, place / "live"), lambda _: None, lambda: None).run()
        row = timings.read(place / "live" / timings.FILE)[ITERATIONS - 1]
    tokens = row["tokens"]
    rate = tokens / row["phases"]["learn"]["cpu_seconds"]
    return {"rows": "rollouts", "tokens": tokens, "tokens_per_s": rate}, {"arm": ARM, **summary(row)}


def summary(row: dict[str, Any]) -> Measured:
    """Seconds on the clock and the share of every part; `generate`: share of a part that samples tokens.

    `publish`: its seconds, and those of them that waited for the disk; the others serialise and hash.
    """
    spent = {name: phase["seconds"] for name, phase in row["phases"].items()}
    shares = {name: spent.get(name, 0.0) / row["seconds"] for name in PARTS}
    shares["rest"] = 1.0 - sum(shares.values())
    return {
        "seconds": row["seconds"],
        "cpu_seconds": row["cpu_seconds"],
        "shares": shares,
        "generate": {name: spent[f"{name}/generate"] / spent[name] for name in ("rollout", "judge")},
        "publish": {"seconds": spent["publish"], "sync_seconds": spent["publish/sync"]},
    }


def _short(config: Config) -> Config:
    """A run of two iterations that measures no panels in between and tells no tracker."""
    train = config.train.model_copy(
        update={"iterations": ITERATIONS, "seeds": 1, "loggers": {}, "callbacks": {}}
    )
    evaluate = config.evaluate.model_copy(update={"curve_tasks": 1, "every": ITERATIONS})
    return config.model_copy(update={"train": train, "evaluate": evaluate})
