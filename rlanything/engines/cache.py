"""Key-value caches: trunks that are read once, and the branches that grow from them.

Letters in shapes: see `forward`. A branch sees the first `visible` tokens of its trunk, then its own tokens, whose
slot t holds position visible + t. Slots at and after a branch's length hold rubbish that no query sees: padding is
written there and overwritten by the next token.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from rlanything.engines import attention, forward
from rlanything.engines.attention import Grid
from rlanything.engines.forward import Rotary, Weights

Ints = NDArray[np.int64]

READ_TOKENS = 8192
"""Most tokens of trunks read at once, padding included: bounds the memory of the widest intermediate."""
SCORES = 1 << 25
"""Most attention scores of one layer held at once when branches are fed many tokens."""


class Trunks:
    """Keys and values (per layer EKTD) of E token sequences, read in full; none of them is ever sampled from."""

    def __init__(self, weights: Weights, keys: list[Tensor], values: list[Tensor]) -> None:
        self.weights, self.keys, self.values = weights, keys, values

    @property
    def width(self) -> int:
        """T: the length of the longest trunk."""
        return self.keys[0].shape[2]

    def select(self, trunks: Ints) -> Trunks:
        """A copy with these trunks only."""
        index = torch.from_numpy(trunks)
        return Trunks(self.weights, [k[index] for k in self.keys], [v[index] for v in self.values])

    @staticmethod
    def read(weights: Weights, rotary: Rotary, prompts: Sequence[Sequence[int]]) -> Trunks:
        """Run the model over prompts (they may be empty) and keep the keys and values of every token."""
        width = max(len(prompt) for prompt in prompts)
        shape = (len(prompts), weights.kv_heads, width, weights.head_size)
        make = weights.embed.new_zeros
        trunks = Trunks(weights, [make(shape) for _ in weights.layers], [make(shape) for _ in weights.layers])
        step = max(1, READ_TOKENS // max(width, 1))
        for start in range(0, len(prompts), step):
            trunks._read(rotary, prompts[start : start + step], start)
        return trunks

    def _read(self, rotary: Rotary, prompts: Sequence[Sequence[int]], start: int) -> None:
        lengths = np.array([len(prompt) for prompt in prompts], dtype=np.int64)
        E, S = len(prompts), int(lengths.max())
        if S == 0:
            return
        rows, offsets = _ragged(lengths)
        places = torch.from_numpy(rows * S + offsets)
        angles = rotary.at(torch.from_numpy(offsets), S)
        hidden = self.weights.embed[torch.tensor(list(chain.from_iterable(prompts)))]
        for index, layer in enumerate(self.weights.layers):
            q, k, v = forward.project_qkv(layer, self.weights, hidden, angles)
            keys, values = (_padded(x, places, E, S).transpose(1, 2) for x in (k, v))
            self.keys[index][start : start + E, :, :S] = keys
            self.values[index][start : start + E, :, :S] = values
            if index == len(self.weights.layers) - 1:
                return
            queries = _padded(q, places, E, S).transpose(1, 2)
            attended = functional.scaled_dot_product_attention(
                queries, keys, values, is_causal=True, scale=1.0, enable_gqa=q.shape[1] != k.shape[1]
            )
            packed = attended.transpose(1, 2).reshape(E * S, -1)[places]
            hidden = forward.finish_layer(layer, self.weights, hidden, packed)


class Branches:
    """B rows, each with its stretch of a trunk and its own cache (per layer BKCD, C slots, `lengths` B in use)."""

    def __init__(self, rotary: Rotary, trunks: Trunks, trunk_of: Ints, visible: Ints) -> None:
        self.weights, self.rotary, self.trunks = trunks.weights, rotary, trunks
        self.trunk_of, self.visible = trunk_of, visible
        self.lengths: Ints = np.zeros(len(trunk_of), dtype=np.int64)
        shape = (len(trunk_of), self.weights.kv_heads, 0, self.weights.head_size)
        self.keys = [self.weights.embed.new_zeros(shape) for _ in self.weights.layers]
        self.values = [self.weights.embed.new_zeros(shape) for _ in self.weights.layers]
        self._grid = _grid(trunk_of, visible, len(trunks.keys[0]))
        self._trunk_biases: dict[int, Tensor | None] = {}

    def __len__(self) -> int:
        return len(self.trunk_of)

    def cached(self) -> Ints:
        """How many tokens of each row's text are in the cache, trunk included."""
        return self.visible + self.lengths

    def select(self, rows: Ints) -> Branches:
        """A copy of these rows; trunks that none of them needs are left out."""
        used, trunk_of = np.unique(self.trunk_of[rows], return_inverse=True)
        whole = len(used) == len(self.trunks.keys[0])
        trunks = self.trunks if whole else self.trunks.select(used)
        chosen = Branches(self.rotary, trunks, trunk_of.astype(np.int64), self.visible[rows])
        chosen.lengths = self.lengths[rows]
        width, index = int(chosen.lengths.max(initial=0)), torch.from_numpy(rows)
        chosen.keys = [k[:, :, :width][index] for k in self.keys]
        chosen.values = [v[:, :, :width][index] for v in self.values]
        return chosen

    def feed(self, tokens: Sequence[Sequence[int]]) -> Tensor:
        """Append tokens to each row (to none where empty) and return logits BV after each row's last token.

        The logits of rows that were fed nothing mean nothing.
        """
        longest = max(len(row) for row in tokens)
        step = self._most_tokens_at_once()
        if longest > step:
            self._run([row[:step] if len(row) > step else () for row in tokens])
            return self.feed([row[step:] if len(row) > step else row for row in tokens])
        return forward.logits(self.weights, self._run(tokens))

    def _most_tokens_at_once(self) -> int:
        width = self.trunks.width + int(self.lengths.max()) + 1
        return max(1, SCORES // (len(self) * self.weights.heads * width))

    def _run(self, tokens: Sequence[Sequence[int]]) -> Tensor:
        """`feed` without the head: hidden states BM at each row's last token."""
        weights = self.weights
        fed = np.array([len(row) for row in tokens], dtype=np.int64)
        counts = np.maximum(fed, 1)
        rows, offsets = _ragged(counts)
        slots = self.lengths[rows] + offsets
        end = int((self.lengths + counts.max()).max())
        self._reserve(end)
        write = torch.from_numpy(rows * weights.kv_heads)[:, None] + torch.arange(weights.kv_heads)
        write = (write * self.keys[0].shape[2] + torch.from_numpy(slots)[:, None]).flatten()
        positions = torch.from_numpy(slots + self.visible[rows])
        angles = self.rotary.at(positions, int(positions.max()) + 1)
        ids = np.fromiter(chain.from_iterable(row or (0,) for row in tokens), dtype=np.int64, count=len(rows))
        hidden = weights.embed[torch.from_numpy(ids)]
        last = torch.from_numpy(np.cumsum(counts) - 1)
        every = _Reach(self, counts, self.lengths[:, None] + np.arange(counts.max()))
        ends = every if counts.max() == 1 else _Reach(self, None, (self.lengths + counts - 1)[:, None])
        final = len(weights.layers) - 1
        for index, layer in enumerate(weights.layers):
            q, k, v = forward.project_qkv(layer, weights, hidden, angles)
            self.keys[index].view(-1, weights.head_size).index_copy_(
                0, write, k.reshape(-1, weights.head_size)
            )
            self.values[index].view(-1, weights.head_size).index_copy_(
                0, write, v.reshape(-1, weights.head_size)
            )
            if index == final and every is not ends:
                q, hidden, every = q[last], hidden[last], ends
            hidden = forward.finish_layer(layer, weights, hidden, every.attend(index, q))
        self.lengths = self.lengths + fed
        return hidden

    def _reserve(self, slots: int) -> None:
        """Make room for `slots` own tokens per row."""
        have = self.keys[0].shape[2]
        if slots <= have:
            return
        more = max(slots, have + have // 2) - have + 16
        self.keys = [functional.pad(k, (0, 0, 0, more)) for k in self.keys]
        self.values = [functional.pad(v, (0, 0, 0, more)) for v in self.values]

    def trunk_bias(self, queries: int) -> Tensor | None:
        """The trunk's bias for that many queries per row and key-value head; kept for the next step."""
        if queries not in self._trunk_biases:
            bias = attention.trunk_bias(self._grid, self.trunks.width, self.weights.kv_heads, queries)
            self._trunk_biases[queries] = bias
        return self._trunk_biases[queries]

    @property
    def grid(self) -> Grid:
        """The order of the rows by trunk."""
        return self._grid


class _Reach:
    """What the queries of one forward pass may see: built once, used by every layer."""

    def __init__(self, branches: Branches, counts: Ints | None, last_visible: Ints) -> None:
        weights = branches.weights
        self._branches = branches
        self._group = weights.heads // weights.kv_heads
        self._shape = last_visible.shape
        self._width = int(last_visible.max()) + 1
        self._places: Tensor | None = None
        if counts is not None and counts.min() != counts.max():
            rows, offsets = _ragged(counts)
            self._places = torch.from_numpy(rows * last_visible.shape[1] + offsets)
        limits = torch.from_numpy(last_visible)
        self._own_bias = attention.own_bias(limits, self._width, weights.kv_heads, self._group)
        self._trunk_bias = (
            branches.trunk_bias(last_visible.shape[1] * self._group) if branches.trunks.width else None
        )

    def attend(self, layer: int, queries: Tensor) -> Tensor:
        """Attention outputs N(HD) of packed queries NHD."""
        (B, S), branches, weights = self._shape, self._branches, self._branches.weights
        padded = queries if self._places is None else _padded(queries, self._places, B, S)
        padded = padded.reshape(B, S, weights.kv_heads, self._group, weights.head_size)
        keys, values = (x[layer][:, :, : self._width] for x in (branches.keys, branches.values))
        own = attention.attend_own(padded, keys, values, self._own_bias)
        if branches.trunks.width:
            keys, values = branches.trunks.keys[layer], branches.trunks.values[layer]
            trunk = attention.attend_trunk(padded, keys, values, self._trunk_bias, branches.grid)
            attended = attention.merge(trunk, own)
        else:
            attended = own.values / own.weight
        flat = attended.reshape(B * S, -1)
        return flat if self._places is None else flat[self._places]


def _ragged(counts: Ints) -> tuple[Ints, Ints]:
    """For packed tokens of rows with these counts: the row of each token, and its index inside the row."""
    rows = np.repeat(np.arange(len(counts)), counts)
    return rows, np.arange(len(rows)) - np.repeat(np.cumsum(counts) - counts, counts)


def _padded(packed: Tensor, places: Tensor, rows: int, width: int) -> Tensor:
    """Packed N.. laid out as (rows, width, ..), zeros where there is no token."""
    out = packed.new_zeros(rows * width, *packed.shape[1:])
    return out.index_copy_(0, places, packed).unflatten(0, (rows, width))


def _grid(trunk_of: Ints, visible: Ints, trunks: int) -> Grid:
    counts = np.bincount(trunk_of, minlength=trunks)
    R = max(1, int(counts.max(initial=0)))
    order = np.argsort(trunk_of, kind="stable")
    places = np.empty_like(trunk_of)
    places[order] = np.repeat(np.arange(trunks) * R, counts) + _ragged(counts)[1]
    rows, seen = np.zeros(trunks * R, dtype=np.int64), np.zeros(trunks * R, dtype=np.int64)
    rows[places], seen[places] = np.arange(len(trunk_of)), visible
    same = len(rows) == len(trunk_of) and bool((rows == np.arange(len(rows))).all())
    seen_grid = torch.from_numpy(seen.reshape(trunks, R))
    return Grid(None if same else torch.from_numpy(rows), torch.from_numpy(places), R, seen_grid)
