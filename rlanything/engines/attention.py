"""Attention of branches: every row sees a stretch of a trunk that it shares with others, then tokens of its own.

Letters in shapes: see `forward`; X is any batch of matrices, Q queries per matrix. The trunk part is one matrix
product for all rows of a trunk, which is what makes many votes on one trajectory (or many rollouts of one prompt)
cheap. The two parts are softmaxed separately and merged by their maxima and sums, as in flash attention.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

HIDDEN = -1e30
"""Bias of a key that a query must not see. Finite, so that a query that sees no key at all gives no NaN."""


@dataclass(frozen=True, slots=True)
class Grid:
    """Where the rows stand when they are ordered by trunk.

    `rows`: (E * R,) row at each place of the grid (0 where there is none), or None when place and row coincide.
    `places`: (B,) place of each row. `per_trunk`: R. `visible`: ER, how many trunk tokens the place may see.
    """

    rows: Tensor | None
    places: Tensor
    per_trunk: int
    visible: Tensor


@dataclass(frozen=True, slots=True)
class Part:
    """What a softmax over some of the keys leaves: the sum of values XQD, the maximum and the sum of weights XQ1."""

    values: Tensor
    maximum: Tensor
    weight: Tensor


def attend_part(queries: Tensor, keys: Tensor, values: Tensor, bias: Tensor | None) -> Part:
    """Unnormalised attention of queries XQD over keys and values XTD; `bias` XQT or None."""
    transposed = keys.transpose(1, 2)
    scores = torch.bmm(queries, transposed) if bias is None else torch.baddbmm(bias, queries, transposed)
    maximum = scores.amax(-1, keepdim=True)
    weights = scores.sub_(maximum).exp_()
    return Part(torch.bmm(weights, values), maximum, weights.sum(-1, keepdim=True))


def attend_own(queries: Tensor, keys: Tensor, values: Tensor, bias: Tensor | None) -> Part:
    """Attention of BSKGD queries to their row's own keys and values BKTD; the parts come back as BSKG-."""
    B, S, K, G, D = queries.shape
    flat = queries.transpose(1, 2).reshape(B * K, S * G, D)
    part = attend_part(flat, keys.flatten(0, 1), values.flatten(0, 1), bias)
    return _each(part, lambda x: x.view(B, K, S, G, -1).transpose(1, 2))


def attend_trunk(queries: Tensor, keys: Tensor, values: Tensor, bias: Tensor | None, grid: Grid) -> Part:
    """Attention of BSKGD queries to their trunk's keys and values EKTD; the parts come back as BSKG-."""
    _, S, K, G, D = queries.shape
    E, R = len(keys), grid.per_trunk
    placed = queries if grid.rows is None else queries[grid.rows]
    flat = placed.view(E, R, S, K, G, D).permute(0, 3, 1, 2, 4, 5).reshape(E * K, R * S * G, D)
    part = attend_part(flat, keys.flatten(0, 1), values.flatten(0, 1), bias)

    def back(x: Tensor) -> Tensor:
        placed = x.view(E, K, R, S, G, -1).permute(0, 2, 3, 1, 4, 5)
        return placed.reshape(E * R, S, K, G, -1) if grid.rows is None else placed.flatten(0, 1)[grid.places]

    return _each(part, back)


def merge(first: Part, second: Part) -> Tensor:
    """The attention output over the keys of both parts."""
    maximum = torch.maximum(first.maximum, second.maximum)
    left, right = (first.maximum - maximum).exp_(), (second.maximum - maximum).exp_()
    weight = first.weight * left + second.weight * right
    return first.values * (left / weight) + second.values * (right / weight)


def own_bias(last_visible: Tensor, width: int, kv_heads: int, group: int) -> Tensor | None:
    """Bias (B * K, S * G, T) that hides keys after `last_visible` (BS); None when every query sees all `width`."""
    B, S = last_visible.shape
    hidden = torch.arange(width) > last_visible.unsqueeze(-1)
    if not bool(hidden.any()):
        return None
    bias = torch.zeros(B, S, width).masked_fill_(hidden, HIDDEN)
    return bias[:, None, :, None].expand(B, kv_heads, S, group, width).reshape(B * kv_heads, S * group, width)


def trunk_bias(grid: Grid, width: int, kv_heads: int, queries: int) -> Tensor | None:
    """Bias (E * K, R * queries, T) that hides trunk tokens from `visible` on; None when every row sees them all."""
    hidden = torch.arange(width) >= grid.visible.unsqueeze(-1)
    if not bool(hidden.any()):
        return None
    E, R = grid.visible.shape
    bias = torch.zeros(E, R, width).masked_fill_(hidden, HIDDEN)
    shape = (E, kv_heads, R, queries, width)
    return bias[:, None, :, None].expand(shape).reshape(E * kv_heads, R * queries, width)


def _each(part: Part, change) -> Part:  # type: ignore[no-untyped-def]
    return Part(change(part.values), change(part.maximum), change(part.weight))
