"""How far the log-probs of the sampler are from the trainer's, and how the loss is corrected for it."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from rlanything.learn.losses import k3

QUANTILES = {"p01": 0.01, "p50": 0.5, "p99": 0.99}
"""Of the importance ratios, by the end of their metric's name."""

Mask = tuple[float, float]
"""The least and the largest ratio of a token that teaches."""


def correction(ratios: Tensor, cap: float, mask: Mask | None) -> Tensor:
    """What the weights of tokens with these importance ratios [N] are multiplied by: min(ratio, cap), 0 outside `mask`.

    Truncated importance sampling, and IcePop's masking of tokens on which sampler and trainer disagree. The weights of
    the other tokens stay as they are.
    """
    factors = ratios.clamp(max=cap)
    return factors if mask is None else factors.masked_fill(_outside(ratios, mask), 0.0)


def mismatch(drift: Sequence[float], cap: float, mask: Mask | None = None) -> dict[str, float]:
    """What the differences trainer's minus sampler's log-prob say, one for each target; {} for none.

    `mismatch_kl`: the k3 estimate of KL(sampler || trainer). `mismatch_max`: the largest absolute difference.
    `ratio_p01`, `ratio_p50`, `ratio_p99`: quantiles of the importance ratios, exp of the differences. `ratio_capped`:
    the share of ratios above `cap`, which count as `cap`. `ratio_masked`, with a mask: the share of those outside.
    """
    if not drift:
        return {}
    differences = torch.tensor(drift, dtype=torch.float64)
    ratios = differences.exp().sort().values
    found = {
        "mismatch_kl": float(k3(differences).mean()),
        "mismatch_max": max(map(abs, drift)),
        **{f"ratio_{name}": float(ratios[round(q * (len(ratios) - 1))]) for name, q in QUANTILES.items()},
        "ratio_capped": float((ratios > cap).double().mean()),
    }
    if mask is not None:
        found["ratio_masked"] = float(_outside(ratios, mask).double().mean())
    return found


def _outside(ratios: Tensor, mask: Mask) -> Tensor:
    low, high = mask
    return (ratios < low) | (ratios > high)
