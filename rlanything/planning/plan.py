"""The dry run of a training: how many rollouts, replies and updates it needs, and its time where it is measured.

Counts are upper bounds, because episodes may end early. A measured time comes from a calibration: a function that gives
the seconds of one iteration.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from rlanything.config import Config
from rlanything.planning.costs.work.workload import proposal_tasks
from rlanything.rewards.kind import kind_of

Calibration = Callable[[Config, Path, str], float]
"""(configuration, root, arm) -> seconds of one iteration of one seed."""


@dataclass(frozen=True)
class ArmPlan:
    """The work of one arm, all seeds together."""

    name: str
    iterations: int
    rollouts: int
    """Episodes of the buffer's tasks, without those of proposals."""
    proposals: int
    """Upper bound of the episodes of proposals."""
    replies: int
    """Upper bound of the reward model's replies: votes or tests."""
    updates: int
    """Optimizer steps of all models."""
    seconds: float | None
    """Measured and scaled up to the configured number of workers; None where nothing was measured."""


def plan_arm(config: Config, root: Path, name: str, calibrate: Calibration | None = None) -> ArmPlan:
    """The plan of one arm. Raises `ConfigError` for an unknown name."""
    arm, seeds = config.arm(name), config.train.seeds
    iterations = config.train.iterations * seeds
    tasks = min(config.rollout.tasks * arm.max_batches, config.tasks.train)
    rollouts = iterations * tasks * config.rollout.rollouts
    # Upper bound: every task has a proposal, which is rolled out as often as the task.
    proposals = rollouts * proposal_tasks(config) if arm.adapt else 0
    replies = kind_of(config).count_replies(config, rollouts + proposals)
    models = 1 + arm.train_reward
    return ArmPlan(
        name,
        iterations,
        rollouts,
        proposals,
        replies if config.asks_model(arm) else 0,
        iterations * config.learn.updates * models,
        _expected(config, calibrate(config, root, name) if calibrate else None),
    )


def _expected(config: Config, seconds: float | None) -> float | None:
    if seconds is None:
        return None
    rounds = -(-config.train.seeds // config.train.workers)
    return seconds * config.train.iterations * rounds
