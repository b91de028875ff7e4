"""The order in which arms are shown."""

from __future__ import annotations

from collections.abc import Iterable

from rlanything.config import BASE

ARMS = (BASE, "outcome", "policy", "policy_reward", "full")
"""The ablation's arms, in order; others follow by name."""


def ordered(arms: Iterable[str]) -> list[str]:
    """Arms in the order of `ARMS`, others after them by name."""
    names = set(arms)
    return [a for a in ARMS if a in names] + sorted(names - set(ARMS))
