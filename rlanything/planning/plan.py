"""The dry run of a training: how many rollouts, replies and updates it needs, and how long it takes.

Counts are upper bounds, because episodes may end early. The time comes from a calibration: a function that trains a few
iterations and returns the seconds of one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from rlanything.config import Config
from rlanything.core.splits import TRAIN
from rlanything.planning.costs.endpoints import endpoint_of
from rlanything.planning.costs.estimate import checkpoints
from rlanything.planning.costs.sizes import Size
from rlanything.rewards.kind import kind_of
from rlanything.runs.progress.ticker import clock

Calibration = Callable[[Config, Path, str], float | None]
"""(configuration, root, arm) -> seconds of one iteration of one seed, or None when it cannot be measured yet."""


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
    """Expected time with the configured number of workers."""


def plan_arm(config: Config, root: Path, name: str, calibrate: Calibration | None = None) -> ArmPlan:
    """The plan of one arm. Raises `ConfigError` for an unknown name."""
    arm, seeds = config.arm(name), config.train.seeds
    iterations = config.train.iterations * seeds
    tasks = min(config.rollout.tasks * arm.max_batches, config.tasks.train)
    rollouts = iterations * tasks * config.rollout.rollouts
    # Upper bound: every task has a proposal, which is rolled out as often as the task.
    proposals = rollouts if arm.adapt else 0
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


def render(config: Config, sizes: Mapping[str, Size], plans: Sequence[ArmPlan]) -> str:
    """The plan as text for a terminal."""
    tasks = config.tasks
    counts = {TRAIN: tasks.train} | {name: panel.tasks for name, panel in tasks.panels.items()}
    panels = sum(counts[name] for name in tasks.policy_panels) * config.evaluate.repeats
    programs = sum(counts[name] for name in tasks.reward_panels) * config.evaluate.reward_rollouts
    replies = kind_of(config).replies
    lines = [
        f"tasks      {_counts(counts)}",
        f"iteration  {config.rollout.tasks} tasks x {config.rollout.rollouts} rollouts, at most "
        f"{config.rollout.max_steps} steps, {config.judge.m} {replies.unit}",
        *(f"{name:<10} {_size(config, name, size)}" for name, size in sizes.items()),
        f"panels     {panels:,} episodes and {programs:,} {replies.panel} a seed and arm",
        "",
        f"{'arm':<14}{'seeds':>6}{'iterations':>12}{'rollouts':>11}{'proposals':>11}{'RM calls':>13}"
        f"{'updates':>9}{'time':>9}",
        *(_row(config, plan) for plan in plans),
    ]
    return "\n".join([*lines, "", *_total(config, plans)]) + "\n"


def _expected(config: Config, seconds: float | None) -> float | None:
    if seconds is None:
        return None
    rounds = -(-config.train.seeds // config.train.workers)
    return seconds * config.train.iterations * rounds


def _size(config: Config, name: str, size: Size) -> str:
    endpoint = endpoint_of(config, name)
    if endpoint is not None:
        return f"{endpoint.model} at {endpoint.root}, an endpoint"
    _, checkpoint = checkpoints(config)[name]
    text = f"{size.parameters:,} parameters, {checkpoint.path}"
    if config.model.embedded is not None:
        return text
    return f"{text} at {checkpoint.revision or 'its newest revision'} ({size.source})"


def _row(config: Config, plan: ArmPlan) -> str:
    time = "?" if plan.seconds is None else clock(plan.seconds)
    return (
        f"{plan.name:<14}{config.train.seeds:>6}{plan.iterations:>12,}{plan.rollouts:>11,}{plan.proposals:>11,}"
        f"{plan.replies:>13,}{plan.updates:>9,}{time:>9}"
    )


def _total(config: Config, plans: Sequence[ArmPlan]) -> list[str]:
    if config.model.embedded is None:
        return [
            "Real checkpoints are not loaded by a plan, so no time is measured. Time and memory are estimates."
        ]
    known = [plan.seconds for plan in plans if plan.seconds is not None]
    if config.endpoints.served:
        return ["No time is measured, because a dry run asks no endpoint: it would cost money."]
    if len(known) < len(plans):
        return [
            "Time is measured once data/ and models/ exist (`rlanything tasks`, `rlanything bootstrap`), with the "
            "project's own environments and engines."
        ]
    return [f"Training takes about {clock(sum(known))}, evaluation not included."]


def _counts(counts: dict[str, int]) -> str:
    return ", ".join(f"{count:,} {name}" for name, count in counts.items())
