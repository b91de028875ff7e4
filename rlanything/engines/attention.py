"""Attention of branches: a token attends to the beginning of a shared trunk and to the tokens of its own row.

Letters in shapes: see `forward`; X owners of caches (rows or trunks), Q queries per owner, N packed query
tokens. The trunk part is one matrix product for all rows of a trunk. This makes many votes on one trajectory
(or many rollouts of one prompt) cheap. Each part has its own softmax. `merge` combines the two parts by their
log-sum-exps.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

Ints = NDArray[np.int64]

HIDDEN = -1e30
"""Bias of a key that a query must not see. Finite, so that a query that sees no key at all gives no NaN."""


@dataclass(frozen=True, slots=True)
class Layout:
    """Packed query tokens arranged by the owner of the keys that they attend to.

    `width`: T, how many keys of an owner are used.
    `inward`: (X * K * Q,) indices into N*K, which arrange the queries by owner.
    `outward`: (N * K,) indices into X*K*Q, which restore the order of the tokens.
    Both are None when every owner has exactly one token, in order.
    `bias`: X1(Q*G)T, or None when every query sees every key.
    """

    owners: int
    queries: int
    width: int
    inward: Tensor | None
    outward: Tensor | None
    bias: Tensor | None

    def attend(self, queries: Tensor, keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
        """Outputs NKGD and log-sum-exps NKG1 of queries NKGD over the first T slots of keys and values XKCD."""
        tokens, heads, group, size = queries.shape
        placed = queries
        if self.inward is not None:
            flat = queries.reshape(tokens * heads, group * size)[self.inward]
            placed = flat.view(self.owners, heads, self.queries * group, size)
        out, total = attend(placed, keys[:, :, : self.width], values[:, :, : self.width], self.bias)
        if self.outward is not None:
            out = out.reshape(-1, group * size)[self.outward].view(queries.shape)
            total = total.reshape(-1, group)[self.outward].view(tokens, heads, group)
        return out, total.unsqueeze(-1)


def attend(queries: Tensor, keys: Tensor, values: Tensor, bias: Tensor | None) -> tuple[Tensor, Tensor]:
    """Outputs XKQD and log-sum-exps XKQ of (pre-scaled) queries XKQD over keys and values XKTD.

    This is the kernel behind `scaled_dot_product_attention` on CPU. It is called directly, because the public
    function does not return the log-sum-exps.
    """
    out, total = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu(
        queries, keys, values, attn_mask=bias, scale=1.0
    )
    return out, total


def merge(one: tuple[Tensor, Tensor], other: tuple[Tensor, Tensor]) -> Tensor:
    """The attention output over the keys of both parts. Each part is given as (output, log-sum-exp)."""
    share = torch.sigmoid(other[1] - one[1])
    return torch.lerp(one[0], other[0], share)


def arrange(owner: Ints, owners: int, last_visible: Ints, width: int, heads: tuple[int, int]) -> Layout:
    """The layout of N tokens.

    Args:
        owner: N, the owner whose keys each token attends to, below `owners`.
        owners: X.
        last_visible: N, the index of the last key that each token may see (-1: none).
        width: T, the number of keys.
        heads: K and G.
    """
    counts = np.bincount(owner, minlength=owners)
    queries = int(counts.max())
    place = np.empty(len(owner), dtype=np.int64)
    place[np.argsort(owner, kind="stable")] = (
        np.repeat(np.arange(owners) * queries, counts) + ragged(counts)[1]
    )
    token, seen = (np.zeros(owners * queries, dtype=np.int64) for _ in range(2))
    token[place], seen[place] = np.arange(len(owner)), last_visible
    bias = None
    if last_visible.min() < width - 1:
        bias = _bias(torch.from_numpy(seen).view(owners, queries), width, heads[1])
    if queries == 1 and len(owner) == owners and np.array_equal(token, np.arange(owners)):
        return Layout(owners, queries, width, None, None, bias)
    each = np.arange(heads[0])
    inward = token.reshape(owners, 1, queries) * len(each) + each[:, None]
    outward = (place // queries * len(each) * queries + place % queries)[:, None] + each * queries
    ways = torch.from_numpy(inward.ravel()), torch.from_numpy(outward.ravel())
    return Layout(owners, queries, width, ways[0], ways[1], bias)


def ragged(counts: Ints) -> tuple[Ints, Ints]:
    """For packed tokens of rows with these counts: the row of each token, and its index inside the row."""
    rows = np.repeat(np.arange(len(counts)), counts)
    return rows, np.arange(len(rows)) - np.repeat(np.cumsum(counts) - counts, counts)


def _bias(last_visible: Tensor, width: int, group: int) -> Tensor:
    """X1(Q*G)T for last visible keys XQ: 0 where a key is visible, `HIDDEN` elsewhere."""
    owners, queries = last_visible.shape
    hidden = torch.arange(width) > last_visible.view(owners, queries, 1, 1)
    bias = torch.zeros(hidden.shape).masked_fill_(hidden, HIDDEN)
    return bias.expand(owners, queries, group, width).reshape(owners, 1, queries * group, width)
