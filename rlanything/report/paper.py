"""The paper's Table 1, ALFWorld part, as data, to set our numbers beside.

Source: Wang et al., "RLAnything: Forge Environment, Policy, and Reward Model in Completely Dynamic RL System",
arXiv 2602.02488, version 1. Columns Before, Policy, +Reward, +Env are our arms base, policy, policy_reward, full; the
paper's table has no column for `outcome`. Values are fractions. The reward model is the same in Before and Policy.
"""

from __future__ import annotations

SOURCE = "arXiv 2602.02488 v1, Table 1 (ALFWorld)"
NOTE = (
    "The paper trains Qwen2.5-7B-Instruct with a Qwen2.5-14B-Instruct reward model for 200 iterations on ALFWorld, "
    "measures on its 140 + 134 games (mean of 3) and labels steps by the majority of a stronger judge's votes. "
    "Compare the order of the arms and the differences, not the levels. The numbers are version 1's, whose abstract "
    "reports +18.7 points on ALFWorld (out-of-domain, 44.9 to 63.6); the abstract of the later ICML 2026 version "
    "reports +21.2 instead."
)
ORDER = ("base", "policy", "policy_reward", "full")
"""The paper's order of arms, worst first."""

TABLE: dict[str, dict[str, float]] = {
    "base": {"in_domain": 0.390, "out_of_domain": 0.449, "rm_process": 0.470, "rm_outcome": 0.596},
    "policy": {"in_domain": 0.511, "out_of_domain": 0.593, "rm_process": 0.470, "rm_outcome": 0.596},
    "policy_reward": {"in_domain": 0.556, "out_of_domain": 0.618, "rm_process": 0.524, "rm_outcome": 0.611},
    "full": {"in_domain": 0.602, "out_of_domain": 0.636, "rm_process": 0.564, "rm_outcome": 0.625},
}
"""arm -> metric -> value. accepted_tasks is not in Table 1: the paper's figure shows about 150 after 200 iterations."""


def value(arm: str, metric: str) -> float | None:
    """The paper's number, or None where its table has none."""
    return TABLE.get(arm, {}).get(metric)


def gain(arm: str, metric: str, over: str = "base") -> float | None:
    """The paper's difference between two arms, or None where its table lacks one of them."""
    upper, lower = value(arm, metric), value(over, metric)
    return None if upper is None or lower is None else upper - lower
