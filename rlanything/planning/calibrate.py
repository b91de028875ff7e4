"""Measures the time of an iteration on this machine, by training on a few tasks in a temporary folder."""

from __future__ import annotations

import tempfile
from pathlib import Path

from rlanything import targets
from rlanything.config import Config
from rlanything.runs import timings
from rlanything.runs.layout import Layout, trained

TASKS, ITERATIONS = 2, 2
"""Two tasks and two iterations take seconds. The second iteration also rolls out the proposals of the first."""


def why_not(config: Config, root: Path) -> str:
    """Why the time cannot be measured, or ''. A plan loads no real checkpoint and makes nothing of another's class."""
    layout = Layout(root)
    if config.model.embedded is None:
        return "real checkpoints are not loaded by a plan"
    if config.train.processes > 1:
        return "one process measures, and an iteration of several processes is another one (train.devices, train.nodes)"
    if config.endpoints.served:
        return "a plan asks no endpoint, because that may cost money"
    if not (targets.is_ours(config.env) and targets.is_ours(config.engine)):
        return "only the project's own environments and engines are measured"
    if not (layout.manifest.is_file() and layout.bootstrap.is_file()):
        return "data/ or models/ is missing; `rlanything tasks` and `rlanything bootstrap` make them"
    return ""


def seconds_per_iteration(config: Config, root: Path, arm: str) -> float:
    """Seconds of one iteration of one seed of `arm`, without the panels of the learning curve.

    Nothing may speak against measuring (`why_not`). Raises `ConfigError` where the arm begins with the reward model of
    another one, and that was not trained.
    """
    from rlanything.runs.parts import RunId
    from rlanything.runs.seedrun import SeedRun

    small, source = _small(config), config.arm(arm).reward_from
    if source is not None:
        trained(config, root, source, 0, "reward")
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        for name in ("data", "models", "experiments"):
            (place / name).symlink_to(root / name)
        if source is not None:
            (place / "runs").mkdir()
            (place / "runs" / source).symlink_to(root / "runs" / source)
        SeedRun(small, RunId(place, arm, 0, place / "live"), lambda text: None, lambda: None).run()
        rows = timings.read(place / "live" / timings.FILE)[:ITERATIONS]
    spent = [row["seconds"] - row["phases"]["panels"]["seconds"] for row in rows]
    return sum(spent) / len(spent) * config.rollout.tasks / small.rollout.tasks


def _small(config: Config) -> Config:
    """The configuration with few tasks and iterations, without loggers and callbacks."""
    rollout = config.rollout.model_copy(update={"tasks": min(TASKS, config.rollout.tasks)})
    train = config.train.model_copy(
        update={
            "iterations": ITERATIONS,
            "seeds": 1,
            "save_rollouts": False,
            "loggers": {},
            "callbacks": {},
        }
    )
    evaluate = config.evaluate.model_copy(update={"curve_tasks": 1})
    return config.model_copy(update={"rollout": rollout, "train": train, "evaluate": evaluate})
