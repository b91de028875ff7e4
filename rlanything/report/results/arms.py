"""The order in which arms are shown."""

from __future__ import annotations

from collections.abc import Iterable

from rlanything.config import BASE, BASE_COOLED

ARMS = (
    BASE, BASE_COOLED, "outcome", "outcome_steps", "dynamic_sampling", "step_only",
    "policy", "policy_learned", "policy_reward", "full",
)  # fmt: skip
"""The arms in experiments/arm/, baselines first, then in the paper's order; others follow by name."""


def ordered(arms: Iterable[str]) -> list[str]:
    """Arms in the order of `ARMS`, others after them by name."""
    names = set(arms)
    return [a for a in ARMS if a in names] + sorted(names - set(ARMS))
