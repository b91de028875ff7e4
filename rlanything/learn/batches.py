"""Cutting the lessons of an iteration into the minibatches that one process learns from."""

from __future__ import annotations

from collections.abc import Sequence

from rlanything.core.types import ScoredReplies, ScoredTrajectory
from rlanything.learn.division import share
from rlanything.learn.module import JointModule, Minibatch
from rlanything.learn.packing import Row, micro_batches, minibatches, policy_rows, reward_rows


def make_batches(
    module: JointModule,
    policy: Sequence[ScoredTrajectory],
    reward: Sequence[ScoredReplies],
    run_seed: int,
    iteration: int,
) -> tuple[list[Minibatch], dict[str, float]]:
    """One minibatch for each update, and metrics: the rows of each model, and those of `JointModule.prepare`."""
    learn = module.config
    units = {
        "policy": [policy_rows(lesson, learn.loss_weight) for lesson in policy],
        "reward": [reward_rows(lesson, learn.loss_weight, learn.micro_batch_tokens) for lesson in reward],
    }
    parts: dict[str, list[list[Row]]] = {}
    metrics: dict[str, float] = {}
    for name, rows in units.items():
        parts[name] = minibatches([r for r in rows if r], learn.updates, run_seed, iteration, name)
        metrics |= module.prepare(name, [row for batch in parts[name] for row in batch])
        metrics[f"{name}/rows"] = float(sum(map(len, parts[name])))
    batches = [
        Minibatch(iteration, *(own_part(module, name, parts[name], update) for name in ("policy", "reward")))
        for update in range(learn.updates)
    ]
    return batches, metrics


def empty_batches(updates: int, iteration: int) -> list[Minibatch]:
    """Minibatches of an iteration that trains nothing."""
    return [Minibatch(iteration, (), ()) for _ in range(updates)]


def own_part(
    module: JointModule, name: str, batches: Sequence[list[Row]], update: int
) -> tuple[tuple[Row, ...], ...]:
    """This process's micro-batches of an update of `policy` or `reward`; () where the model has fewer updates."""
    if update >= len(batches):
        return ()
    groups = micro_batches(batches[update], module.config.micro_batch_tokens)
    return tuple(tuple(group) for group in share(groups, module.trainer, module.blank(name)))
