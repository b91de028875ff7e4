"""How long an iteration takes here: a moment of real training on a few tasks, in a temporary folder."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

from rlanything.config import Config
from rlanything.stages.layout import Layout

TASKS, ITERATIONS = 2, 2
"""Small enough for seconds; the second iteration also rolls out what an adapting arm proposed in the first."""


def seconds_per_iteration(config: Config, root: Path, arm: str) -> float | None:
    """Seconds of one iteration of one seed of `arm`, or None while data/ and models/ are not there."""
    layout = Layout(root)
    if not (layout.manifest.is_file() and layout.bootstrap.is_file()):
        return None
    from rlanything.stages.seedrun import SeedRun, Where

    small = _small(config)
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        for name in ("data", "models", "experiments"):
            (place / name).symlink_to(root / name)
        run = SeedRun(small, Where(place, arm, 0, place / "live"), lambda text: None)
        start = time.monotonic()
        run.run()
        spent = time.monotonic() - start
    return spent / ITERATIONS * config.rollout.tasks / small.rollout.tasks


def _small(config: Config) -> Config:
    rollout = config.rollout.model_copy(update={"tasks": min(TASKS, config.rollout.tasks)})
    train = config.train.model_copy(update={"iterations": ITERATIONS, "seeds": 1, "save_rollouts": False})
    evaluate = config.evaluate.model_copy(update={"curve_tasks": 1})
    return config.model_copy(update={"rollout": rollout, "train": train, "evaluate": evaluate})
