"""Checks of what the models learn: nothing, the wrong thing, or too fast."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import fmean

from rlanything.report.results.flattery import flattery
from rlanything.watch.advice.warned import LAST, Warned, is_policy_panel, last
from rlanything.watch.tolerant import Row

AT_CHANCE = 1.0
"""Theorem 1 needs mu above it."""
NEAR_CHANCE = 1.1
"""mu that falls below it is close to telling nothing."""
FALLEN = 0.1
"""Loss of mu since the first iterations that counts as falling: about twice its spread between iterations."""
ALIKE = 0.2
"""Rise of the share of steps with unanimous votes. Where a learning reward model harmed the policy it was at least 0.24
in each of four seeds, and with a frozen one at most 0.05 (experiments/check/weak_reward_faster.yaml, `seeds: 4`).
With `advantage: mixed` it was as large, and no harm was seen (experiments/check/votes_alone.yaml)."""
BELOW_BASE = 1.5
"""The trained policy is this many standard errors below the base on a panel, twice in a row: by chance alone that
happens in fewer than one of ten runs."""
PANEL_TASKS = 50
"""Tasks of a panel where nothing says how many there are; the default scale measures as many."""
MIXED = "let votes decide only where outcomes differ (`advantage: mixed` in place of `advantage: step`)"
"""What mended a policy that lost beside a reward model: one that learns, or one that is wrong more often than right
(docs/study_records.md, votes_alone and below_chance)."""


def nothing_learnt(rows: Sequence[Row]) -> Warned | None:
    """No trajectory trained the policy."""
    trained = last(rows, "policy_trajectories")
    if not trained or max(trained) > 0:
        return None
    return Warned(
        "nothing learnt",
        f"no trajectory trained the policy in the last {LAST} iterations",
        "make tasks easier or harder (the environment's settings), or widen signals.policy_min and policy_max",
    )


def at_chance(rows: Sequence[Row]) -> Warned | None:
    """mu <= 1: the votes tell nothing about the outcome (Theorem 1)."""
    mu = last(rows, "mu")
    if not mu or max(mu) > AT_CHANCE:
        return None
    learns = "" if rows[-1].get("reward/rows") else "let it learn (arm `policy_reward`), "
    return Warned(
        "mu at chance",
        f"mu was at most 1 for {LAST} iterations (now {mu[-1]:.2f}): votes say nothing about success (Theorem 1)",
        f"train the reward model longer (bootstrap.reward), {learns}use a stronger one (model.reward), lower "
        f"signals.lambda, or {MIXED}",
    )


def falling(rows: Sequence[Row]) -> Warned | None:
    """mu falls towards 1."""
    mu = [value for row in rows if (value := row.get("mu")) is not None]
    if len(mu) < 2 * LAST or not AT_CHANCE < (now := fmean(mu[-LAST:])) < NEAR_CHANCE:
        return None
    if fmean(mu[:LAST]) - now < FALLEN:
        return None
    return Warned(
        "mu falls",
        f"mu fell from {fmean(mu[:LAST]):.2f} to {now:.2f}; at 1 votes say nothing about success (Theorem 1)",
        "lower learn.reward.lr, or arm `policy`, which keeps the reward model as it is",
    )


def alike(rows: Sequence[Row]) -> Warned | None:
    """The votes of a reward model that learns agree with each other more and more often."""
    shares = [value for row in rows if (value := row.get("unanimous")) is not None]
    if len(shares) < 2 * LAST or not rows[-1].get("reward/rows"):
        return None
    first, now = fmean(shares[:LAST]), fmean(shares[-LAST:])
    if now - first < ALIKE:
        return None
    return Warned(
        "votes alike",
        f"all votes agree on {now:.0%} of the steps, of {first:.0%} at first: errors that they share are not averaged "
        "out, and the policy may learn them",
        f"lower learn.reward.lr, or {MIXED}; `rlanything rollouts votes RUN` shows how often they err",
    )


def flattered(rows: Sequence[Row]) -> Warned | None:
    """The votes rise while success does not: the policy may be learning to please its reward model."""
    numbered = {int(number): row for row in rows if (number := row.get("iteration")) is not None}
    series = [
        {i: value for i, row in numbered.items() if (value := row.get(key)) is not None}
        for key in ("mean_vote", "accuracy")
    ]
    found = flattery(*series)
    if found is None:
        return None
    return Warned(
        "votes flatter",
        f"the mean vote rose by {found.rise:.2f} while accuracy changed by {100 * found.gain:+.1f} points, "
        f"from iteration {found.since} on: the policy may be learning to please the reward model",
        f"`rlanything rollouts paid RUN` shows what the votes pay for; {MIXED}",
    )


def below_base(rows: Sequence[Row], tasks: int | None) -> Warned | None:
    """The trained policy is worse on a panel of so many tasks than the base, measured before the first update."""
    error = math.sqrt(0.5 / (tasks or PANEL_TASKS))  # of the difference of two shares near one half
    for key in sorted({key for row in rows for key in row if is_policy_panel(key)}):
        measured = [(row, value) for row in rows if (value := row.get(key)) is not None]
        curve = [value for _, value in measured]
        if len(curve) >= 3 and max(curve[-2:]) < curve[0] - BELOW_BASE * error:
            # A panel is not measured in every iteration, so the last row need not be the one with the last value.
            number = measured[-1][0].get("iteration")
            when = "" if number is None else f" in iteration {int(number)}"
            return Warned(
                "below the base",
                f"{key} is {curve[-1]:.2f}{when}; the base had {curve[0]:.2f}",
                "lower learn.policy.lr, raise learn.beta; `rlanything rollouts show RUN` shows what is rewarded",
            )
    return None


def not_finite(rows: Sequence[Row]) -> Warned | None:
    """A loss is no number: it is null in the metrics, though there was something to learn from."""
    for key, rows_key in (("policy/loss", "policy/rows"), ("reward/loss", "reward/rows")):
        if rows and key in rows[-1] and rows[-1][key] is None and rows[-1].get(rows_key):
            return Warned(
                "loss not finite",
                f"{key} of the last iteration is no finite number; the weights are probably lost",
                f"stop; lower learn.{key.partition('/')[0]}.lr or its clip_norm, then train again",
            )
    return None
