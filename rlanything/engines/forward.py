"""The Qwen2 / Llama forward pass for small models on CPU: everything but attention, on packed tokens.

Letters in shapes: B rows (branches), E trunks, A rows that are fed, N tokens of several rows packed
without padding, T cached tokens, C slots of a cache, H query heads, K key-value heads,
G = H / K, D head size, M model width, V vocabulary.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from rlanything.engines.weights import Layer, Weights


class Rotary:
    """The table of rotary angles, grown on demand; entry p is cos + i sin of the angles at position p."""

    def __init__(self, weights: Weights) -> None:
        exponents = torch.arange(0, weights.head_size, 2, dtype=torch.float32) / weights.head_size
        self._frequencies = 1.0 / (weights.rope_theta**exponents)
        self._table = torch.empty(0, 1, weights.head_size // 2, dtype=torch.complex64)

    def at(self, positions: Tensor, end: int) -> Tensor:
        """Angles for positions N, all below `end`; shape N1(D/2), complex."""
        if end > len(self._table):
            steps = torch.arange(max(end, 2 * len(self._table), 256), dtype=torch.float32)
            angles = torch.outer(steps, self._frequencies)
            self._table = torch.polar(torch.ones_like(angles), angles).unsqueeze(1)
        return self._table[positions]


def project_qkv(
    layer: Layer, weights: Weights, hidden: Tensor, angles: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """Queries NHD (rotated, scaled), keys NKD (rotated) and values NKD of hidden states NM."""
    normed = functional.rms_norm(hidden, (hidden.shape[-1],), layer.attention_norm, weights.eps)
    heads, kv_heads, size = weights.heads, weights.kv_heads, weights.head_size
    qkv = functional.linear(normed, layer.qkv, layer.qkv_bias).view(-1, heads + 2 * kv_heads, size)
    rotated = qkv[:, : heads + kv_heads]
    torch.view_as_complex(rotated.unflatten(-1, (-1, 2))).mul_(angles)
    return qkv[:, :heads], qkv[:, heads : heads + kv_heads], qkv[:, heads + kv_heads :]


def finish_layer(layer: Layer, weights: Weights, hidden: Tensor, attended: Tensor) -> Tensor:
    """Hidden states NM after the output projection of `attended` N(HD) and the gated MLP."""
    hidden = hidden + functional.linear(attended, layer.out, layer.out_bias)
    normed = functional.rms_norm(hidden, (hidden.shape[-1],), layer.mlp_norm, weights.eps)
    gate, up = functional.linear(normed, layer.gate_up, layer.gate_up_bias).chunk(2, -1)
    return hidden.add_(functional.linear(functional.silu(gate).mul_(up), layer.down, layer.down_bias))


def logits(weights: Weights, hidden: Tensor) -> Tensor:
    """Logits BV of final hidden states BM."""
    normed = functional.rms_norm(hidden, (hidden.shape[-1],), weights.norm, weights.eps)
    return functional.linear(normed, weights.head)
