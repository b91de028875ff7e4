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


def policy_advantages(
    rewards: Sequence[Sequence[float]], scale: Scale = "step", outcomes: Sequence[int] | None = None
) -> list[list[float]]:
    """Advantage of each step: z-score over the trajectories of the same task that have a step i.

    `rewards[tau][i]`: rows may differ in length. Population std. The advantage is 0 where all rewards of a step i are
    equal, and where only one trajectory has one. `scale="task"` subtracts the same mean but divides by the std of all
    the task's rewards. Only failures reach the late steps, where the std of a single step is mostly noise of the votes.
    Dividing by it would enlarge this noise. outcomes[tau]: the advantage is also 0 at a step i that only trajectories
    with equal outcomes have, so that votes alone decide nothing (DAPO's dynamic sampling, arXiv 2503.14476, for steps).
    """
    longest = max((len(r) for r in rewards), default=0)
    task_std = spread([x for r in rewards for x in r])
    result = [[0.0] * len(r) for r in rewards]
    for i in range(longest):
        alive = [tau for tau, r in enumerate(rewards) if len(r) > i]
        column = [rewards[tau][i] for tau in alive]
        own_std = spread(column)
        alike = outcomes is not None and len({outcomes[tau] for tau in alive}) == 1
        if len(alive) < 2 or own_std < EPS or alike:
            continue
        std = task_std if scale == "task" else own_std
        centre = sum(column) / len(column)
        for tau, value in zip(alive, column, strict=True):
            result[tau][i] = (value - centre) / std
    return result


def trajectory_advantages(outcomes: Sequence[int]) -> list[float]:
    """GRPO with outcomes: the advantage of a trajectory is the z-score of its outcome over the task's rollouts.

    Population std. Equal outcomes give 0.
    """
    return [score or 0.0 for score in z_scores(outcomes, lone=0.0)]


def vote_advantages(reward: float, votes: Sequence[int | None]) -> list[float | None]:
    """Advantages of the m votes of one step: z-score of R^S_j = R * S_j (Eq. 2) over the valid votes.

    None: the vote does not train the reward model (the valid votes agree, or R is 0). A vote without a verdict gets the
    smallest advantage of the step (0 where there is none) minus one. It is not part of the z-score, so a format error
    never raises the advantage of a wrong verdict.
    """
    scored = z_scores([None if v is None else reward * v for v in votes], lone=None)
    return below_all(scored, [v is not None for v in votes])


def z_scores(values: Sequence[float | None], lone: float | None) -> list[float | None]:
    """z-scores of the values that are not None (population std). lone: the score of each where all are equal."""
    known = [value for value in values if value is not None]
    std = spread(known)
    if std < EPS:
        return [None if value is None else lone for value in values]
    centre = sum(known) / len(known)
    return [None if value is None else (value - centre) / std for value in values]


def below_all(scored: Sequence[float | None], readable: Sequence[bool]) -> list[float | None]:
    """The advantages of replies, where an unreadable one gets the smallest of `scored` (0 for none) minus one."""
    floor = min((a for a in scored if a is not None), default=0.0)
    return [a if known else floor - 1.0 for a, known in zip(scored, readable, strict=True)]


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
