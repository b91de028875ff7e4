"""Key-value caches: trunks that are read once, and the branches that grow from them.

Letters in shapes: see `forward`. A branch sees the first `visible` tokens of its trunk, then its own tokens. Slot t
of a branch holds position visible + t. No query sees the slots at and after a branch's length. They hold zeros, or
tokens that were discarded by lowering `lengths`.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from rlanything.engines import attention, forward
from rlanything.engines.attention import Ints, Layout, ragged
from rlanything.engines.forward import Rotary
from rlanything.engines.weights import Weights

READ_TOKENS = 8192
"""The most tokens read in one pass, padding included. It bounds the memory of the widest intermediate."""
FEED_SCORES = 1 << 24
"""The most (query, key) pairs at once when branches are fed many tokens. It bounds the memory of the bias."""


SPARE_SLOTS = 32
"""Unused slots that `Branches.select` copies as well, so that the copy need not grow at its first token."""


class Trunks:
    """Keys and values (per layer EKTD) of E token sequences. Trunks are only read: nothing is appended to them."""

    def __init__(self, weights: Weights, keys: list[Tensor], values: list[Tensor]) -> None:
        self.weights, self.keys, self.values = weights, keys, values

    def __len__(self) -> int:
        return len(self.keys[0])

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
        """Run the model over prompts, and keep the keys and values of every token. Prompts may be empty."""
        width = max(len(prompt) for prompt in prompts)
        shape = (len(prompts), weights.kv_heads, width, weights.head_size)
        make = weights.embed.new_zeros
        trunks = Trunks(weights, [make(shape) for _ in weights.layers], [make(shape) for _ in weights.layers])
        step = max(1, READ_TOKENS // max(width, 1))
        for start in range(0, len(prompts) if width else 0, step):
            trunks._read(rotary, prompts[start : start + step], start)
        return trunks

    def _read(self, rotary: Rotary, prompts: Sequence[Sequence[int]], start: int) -> None:
        lengths = np.array([len(prompt) for prompt in prompts], dtype=np.int64)
        count, longest = len(prompts), int(lengths.max())
        rows, offsets = ragged(lengths)
        places = torch.from_numpy(rows * longest + offsets)
        angles = rotary.at(torch.from_numpy(offsets), longest)
        hidden = self.weights.embed[torch.tensor(list(chain.from_iterable(prompts)))]
        for index, layer in enumerate(self.weights.layers):
            q, k, v = forward.project_qkv(layer, self.weights, hidden, angles)
            keys, values = (_padded(x, places, count, longest).transpose(1, 2) for x in (k, v))
            self.keys[index][start : start + count, :, :longest] = keys
            self.values[index][start : start + count, :, :longest] = values
            if index == len(self.weights.layers) - 1:
                return
            attended = functional.scaled_dot_product_attention(
                _padded(q, places, count, longest).transpose(1, 2),
                keys,
                values,
                is_causal=True,
                scale=1.0,
                enable_gqa=q.shape[1] != k.shape[1],
            )
            packed = attended.transpose(1, 2).reshape(count * longest, -1)[places]
            hidden = forward.finish_layer(layer, self.weights, hidden, packed)


class Branches:
    """B rows. Each sees the beginning of a trunk and has a cache of its own.

    Caches: per layer BKCD, of which the first `lengths` (B) slots are in use. `visible`: B, see the module.
    """

    def __init__(self, rotary: Rotary, trunks: Trunks, trunk_of: Ints, visible: Ints) -> None:
        self.weights, self._rotary, self._trunks = trunks.weights, rotary, trunks
        self._trunk_of, self.visible = trunk_of, visible
        self.lengths: Ints = np.zeros(len(trunk_of), dtype=np.int64)
        shape = (len(trunk_of), self.weights.kv_heads, 0, self.weights.head_size)
        self._keys = [self.weights.embed.new_zeros(shape) for _ in self.weights.layers]
        self._values = [self.weights.embed.new_zeros(shape) for _ in self.weights.layers]
        self._trunk_rows: Ints = np.zeros(0, dtype=np.int64)
        self._trunk_layout: Layout | None = None

    def __len__(self) -> int:
        return len(self.visible)

    def select(self, rows: Ints) -> Branches:
        """A copy of these rows. Trunks that none of these rows uses are left out."""
        used, trunk_of = np.unique(self._trunk_of[rows], return_inverse=True)
        trunks = self._trunks if len(used) == len(self._trunks) else self._trunks.select(used)
        chosen = Branches(self._rotary, trunks, trunk_of.astype(np.int64), self.visible[rows])
        chosen.lengths = self.lengths[rows]
        used_slots, index = int(chosen.lengths.max()) + SPARE_SLOTS, torch.from_numpy(rows)
        chosen._keys = [k[:, :, :used_slots][index] for k in self._keys]
        chosen._values = [v[:, :, :used_slots][index] for v in self._values]
        return chosen

    def read(self, tokens: Sequence[Sequence[int]]) -> None:
        """Append tokens to each row (none where empty), without logits."""
        if any(tokens):
            self._run(self._read_all_but(self._most_at_once(tokens), tokens), keep_hidden=False)

    def feed(self, tokens: Sequence[Sequence[int]]) -> Tensor:
        """Append tokens to each row (none where empty). Returns logits AV after the last token of the A rows fed."""
        tokens = self._read_all_but(self._most_at_once(tokens), tokens)
        return forward.logits(self.weights, self._run(tokens, keep_hidden=True))

    def _most_at_once(self, tokens: Sequence[Sequence[int]]) -> int:
        """How many tokens per row may be fed in one pass."""
        width = self._trunks.width + int(self.lengths.max()) + max(len(row) for row in tokens)
        return max(1, min(FEED_SCORES // (len(self) * width), READ_TOKENS // len(self)))

    def _read_all_but(self, most: int, tokens: Sequence[Sequence[int]]) -> Sequence[Sequence[int]]:
        """Read the beginnings of rows with more than `most` tokens; returns the rest, at most `most` tokens per row."""
        while max(len(row) for row in tokens) > most:
            self._run([row[:most] if len(row) > most else () for row in tokens], keep_hidden=False)
            tokens = [row[most:] if len(row) > most else row for row in tokens]
        return tokens

    def _run(self, tokens: Sequence[Sequence[int]], *, keep_hidden: bool) -> Tensor:
        """One forward pass. With `keep_hidden`, returns hidden states AM at the last token of each row that is fed.

        Without `keep_hidden`, the result has no meaning.
        """
        weights = self.weights
        counts = np.array([len(row) for row in tokens], dtype=np.int64)
        rows, offsets = ragged(counts)
        slots, last = self.lengths[rows] + offsets, np.cumsum(counts)[counts > 0] - 1
        self._reserve(int(slots.max()) + 1)
        write, angles = self._addresses(rows, slots), self._angles(slots + self.visible[rows])
        ids = np.fromiter(chain.from_iterable(tokens), dtype=np.int64, count=len(rows))
        hidden = weights.embed[torch.from_numpy(ids)]
        every = ends = self._layouts(rows, slots)
        if keep_hidden and len(last) < len(rows):
            ends = self._layouts(rows[last], slots[last])
        self.lengths = self.lengths + counts
        for index, layer in enumerate(weights.layers):
            q, k, v = forward.project_qkv(layer, weights, hidden, angles)
            for cache, new in ((self._keys[index], k), (self._values[index], v)):
                cache.view(-1, weights.head_size).index_copy_(0, write, new.reshape(-1, weights.head_size))
            if index == len(weights.layers) - 1:
                if not keep_hidden:
                    break
                if every is not ends:
                    q, hidden, every = q[torch.from_numpy(last)], hidden[torch.from_numpy(last)], ends
            hidden = forward.finish_layer(layer, weights, hidden, self._attend(index, q, *every))
        return hidden

    def _addresses(self, rows: Ints, slots: Ints) -> Tensor:
        """Indices, N*K, of the keys of N tokens in a cache viewed as (B*K*C, D)."""
        _, heads, room, _ = self._keys[0].shape
        return torch.from_numpy(((rows[:, None] * heads + np.arange(heads)) * room + slots[:, None]).ravel())

    def _angles(self, positions: Ints) -> Tensor:
        return self._rotary.at(torch.from_numpy(positions), int(positions.max()) + 1)

    def _attend(self, index: int, queries: Tensor, own: Layout, trunk: Layout | None) -> Tensor:
        """Attention outputs N(HD) of queries NHD."""
        heads = self.weights.kv_heads
        grouped = queries.unflatten(1, (heads, -1))
        part = own.attend(grouped, self._keys[index], self._values[index])
        if trunk is None:
            return part[0].flatten(1)
        return attention.merge(
            part, trunk.attend(grouped, self._trunks.keys[index], self._trunks.values[index])
        ).flatten(1)

    def _layouts(self, rows: Ints, slots: Ints) -> tuple[Layout, Layout | None]:
        """Layouts of tokens at `slots` of `rows`: for their own row, and for their trunk (None for empty trunks)."""
        weights, trunks = self.weights, self._trunks
        heads = weights.kv_heads, weights.heads // weights.kv_heads
        own = attention.arrange(rows, len(self), slots, int(slots.max()) + 1, heads)
        if not trunks.width:
            return own, None
        if np.array_equal(rows, self._trunk_rows):
            return own, self._trunk_layout
        owner, last = self._trunk_of[rows], self.visible[rows] - 1
        self._trunk_rows = rows
        self._trunk_layout = attention.arrange(owner, len(trunks), last, trunks.width, heads)
        return own, self._trunk_layout

    def _reserve(self, slots: int) -> None:
        """Make room for `slots` own tokens per row. New slots are zero, because even hidden keys must be finite."""
        have = self._keys[0].shape[2]
        if slots > have:
            room = max(slots, 2 * have, 32)
            self._keys = [_grown(k, room) for k in self._keys]
            self._values = [_grown(v, room) for v in self._values]


def _grown(cache: Tensor, room: int) -> Tensor:
    """A copy of a cache BKCD with `room` slots."""
    rows, heads, have, size = cache.shape
    grown = cache.new_empty(rows, heads, room, size)
    grown[:, :, :have] = cache
    grown[:, :, have:] = 0.0
    return grown


def _padded(packed: Tensor, places: Tensor, rows: int, width: int) -> Tensor:
    """Packed N.. laid out as (rows, width, ..), zeros where there is no token."""
    out = packed.new_zeros(rows * width, *packed.shape[1:])
    return out.index_copy_(0, places, packed).unflatten(0, (rows, width))
