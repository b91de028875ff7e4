"""Counter-based uniform numbers and inverse-CDF sampling, shared by every engine of this package.

Every request has its own seed.

Letters in shapes: B rows, A alternatives (the whole vocabulary, or the allowed ids), N token positions.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_MULTIPLY_1 = np.uint64(0xBF58476D1CE4E5B9)
_MULTIPLY_2 = np.uint64(0x94D049BB133111EB)
_LARGEST_UNIFORM = 1.0 - 2.0**-50
"""The largest uniform number. Its product with the total of a CDF stays below that total after rounding."""


def _mix(values: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """The finaliser of splitmix64: a bijection on 64-bit words that scrambles every bit."""
    values = (values ^ (values >> np.uint64(30))) * _MULTIPLY_1
    values = (values ^ (values >> np.uint64(27))) * _MULTIPLY_2
    return values ^ (values >> np.uint64(31))


def uniforms(seeds: Sequence[int], count: int) -> NDArray[np.float64]:
    """Uniform numbers in [0, 1), shape BN, where number (b, n) depends on (seeds[b], n) only.

    Row b is the splitmix64 stream whose state starts at the scrambled seed, so `uniforms([s], 5)` begins with
    `uniforms([s], 3)`. Raises `OverflowError` for a seed that is negative or does not fit 64 bits.
    """
    starts = _mix(np.asarray(list(seeds), dtype=np.uint64) + _GOLDEN)
    counters = np.arange(1, count + 1, dtype=np.uint64) * _GOLDEN
    bits = _mix(starts[:, None] + counters[None, :])
    return np.minimum((bits >> np.uint64(11)).astype(np.float64) * 2.0**-53, _LARGEST_UNIFORM)


def draw(logits: Tensor, uniform: Tensor, temperature: Tensor) -> tuple[Tensor, Tensor]:
    """Sample one alternative per row by inverting the CDF of softmax(logits / temperature).

    Args:
        logits: BA; alternatives that do not exist are -inf.
        uniform: B, float64 in [0, 1).
        temperature: B; 0 takes the most likely alternative (the first of equals). On the CPU: there it is looked at
            without waiting for the logits' device.

    Returns:
        The chosen indices (B, int64) and their log-probs at temperature 1 (B, float32).

    Raises:
        ValueError: when a row's logits hold NaN or +inf, or nothing but -inf.
    """
    logits, greedy = logits.float(), temperature == 0
    plain = logits.softmax(-1)
    probabilities = plain
    if not bool((temperature == 1).all()):
        scale = temperature.masked_fill(greedy, 1.0).to(logits)
        probabilities = (logits / scale[:, None]).softmax(-1)
    cumulative = probabilities.cumsum(-1, dtype=torch.float64)
    if not bool(cumulative[:, -1].isfinite().all()):
        raise ValueError("the model gives logits that are not finite: its weights have diverged")
    threshold = (uniform * cumulative[:, -1]).unsqueeze(1)
    chosen = torch.searchsorted(cumulative, threshold, right=True).squeeze(1)
    if bool(greedy.any()):
        chosen = torch.where(greedy.to(logits.device), logits.argmax(-1), chosen)
    return chosen, plain.gather(1, chosen.unsqueeze(1)).squeeze(1).log()
