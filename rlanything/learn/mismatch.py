"""How far the log-probs of the sampler are from the trainer's, as metrics of an iteration."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from rlanything.learn.losses import k3

QUANTILES = {"p01": 0.01, "p50": 0.5, "p99": 0.99}
"""Of the importance ratios, by the end of their metric's name."""


def mismatch(drift: Sequence[float], cap: float) -> dict[str, float]:
    """What the differences trainer's minus sampler's log-prob say, one for each target; {} for none.

    `mismatch_kl`: the k3 estimate of KL(sampler || trainer). `mismatch_max`: the largest absolute difference.
    `ratio_p01`, `ratio_p50`, `ratio_p99`: quantiles of the importance ratios, exp of the differences. `ratio_capped`:
    the share of ratios above `cap`, which count as `cap`.
    """
    if not drift:
        return {}
    ratios = torch.tensor(drift, dtype=torch.float64).exp().sort().values
    return {
        "mismatch_kl": sum(float(k3(torch.tensor(d))) for d in drift) / len(drift),
        "mismatch_max": max(map(abs, drift)),
        **{f"ratio_{name}": float(ratios[round(q * (len(ratios) - 1))]) for name, q in QUANTILES.items()},
        "ratio_capped": float((ratios > cap).double().mean()),
    }
