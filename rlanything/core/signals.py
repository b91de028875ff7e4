"""Rewards and advantages of the paper, as pure functions of numbers.

tau: trajectory; i: index of a step; j: index of a vote; O: outcome; S: vote; R: integrated reward.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt
from typing import Literal

Scale = Literal["step", "task"]
EPS = 1e-9
"""A smaller standard deviation is rounding noise between equal numbers. The advantages are then 0 or None."""


def integrated_rewards(
    outcome: int, votes: Sequence[Sequence[int | None]], lam: float, *, use_outcome: bool = True
) -> list[float]:
    """Eq. 1 for every step of one trajectory: R_i = O + lambda * mean_j S_ij, over the valid votes.

    `votes[i]` holds +1, -1 or None (no verdict). A step without a valid vote has R_i = O.
    `use_outcome=False` leaves O out: the arm that learns from votes alone.
    """
    base = float(outcome) if use_outcome else 0.0
    return [base + lam * mean_vote(step) for step in votes]


def mean_vote(votes: Sequence[int | None]) -> float:
    """Mean of the valid votes; 0.0 when no vote is valid."""
    valid = [v for v in votes if v is not None]
    return sum(valid) / len(valid) if valid else 0.0


def policy_advantages(rewards: Sequence[Sequence[float]], scale: Scale = "step") -> list[list[float]]:
    """Advantage of each step: z-score over the trajectories of the same task that have a step i.

    `rewards[tau][i]`: rows may differ in length. Population std. The advantage is 0 where the std is 0, and where only
    one trajectory has a step i. `scale="task"` subtracts the same mean but divides by the std of all the task's
    rewards. Only failures reach the late steps, where the std of a single step is mostly noise of the votes. Dividing
    by it would enlarge this noise.
    """
    longest = max((len(r) for r in rewards), default=0)
    task_std = spread([x for r in rewards for x in r])
    result = [[0.0] * len(r) for r in rewards]
    for i in range(longest):
        alive = [tau for tau, r in enumerate(rewards) if len(r) > i]
        column = [rewards[tau][i] for tau in alive]
        std = task_std if scale == "task" else spread(column)
        if len(alive) < 2 or std < EPS:
            continue
        centre = sum(column) / len(column)
        for tau, value in zip(alive, column, strict=True):
            result[tau][i] = (value - centre) / std
    return result


def trajectory_advantages(outcomes: Sequence[int]) -> list[float]:
    """GRPO with outcomes: the advantage of a trajectory is the z-score of its outcome over the task's rollouts.

    Population std. Equal outcomes give 0.
    """
    std = spread(outcomes)
    if std < EPS:
        return [0.0] * len(outcomes)
    centre = sum(outcomes) / len(outcomes)
    return [(outcome - centre) / std for outcome in outcomes]


def vote_advantages(reward: float, votes: Sequence[int | None]) -> list[float | None]:
    """Advantages of the m votes of one step: z-score of R^S_j = R * S_j (Eq. 2) over the valid votes.

    None: the vote does not train the reward model (the valid votes agree, or R is 0). A vote without a verdict gets the
    smallest advantage of the step (0 where there is none) minus one. It is not part of the z-score, so a format error
    never raises the advantage of a wrong verdict.
    """
    consistency = [reward * v for v in votes if v is not None]
    std = spread(consistency)
    scored: list[float | None] = [None] * len(votes)
    if std >= EPS:
        centre = sum(consistency) / len(consistency)
        scored = [None if v is None else (reward * v - centre) / std for v in votes]
    floor = min((a for a in scored if a is not None), default=0.0)
    return [floor - 1.0 if v is None else a for v, a in zip(votes, scored, strict=True)]


def accuracy(outcomes: Sequence[int]) -> float:
    """Share of O = +1. Raises `ValueError` for no outcomes."""
    if not outcomes:
        raise ValueError("accuracy of no outcomes")
    return sum(o == 1 for o in outcomes) / len(outcomes)


def balance_weights(outcomes: Sequence[int]) -> list[float]:
    """Weights of rows, with mean 1. Successes and failures have the same total weight.

    Without successes, or without failures, every weight is 0: the rows do not train.
    """
    good = sum(o == 1 for o in outcomes)
    bad = len(outcomes) - good
    if not good or not bad:
        return [0.0] * len(outcomes)
    return [len(outcomes) / (2 * (good if o == 1 else bad)) for o in outcomes]


def spread(values: Sequence[float]) -> float:
    """Population standard deviation; 0.0 for no values."""
    if not values:
        return 0.0
    centre = sum(values) / len(values)
    return sqrt(sum((v - centre) ** 2 for v in values) / len(values))
