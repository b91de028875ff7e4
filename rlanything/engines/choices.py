"""Constrained decoding: which token may come next when one of a few given sequences must be produced.

A set of sequences is kept as a sorted tuple. A position is an interval of that tuple: all sequences of the interval
share the tokens taken so far. This works like a trie, but no trie is built.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise

Sequences = tuple[tuple[int, ...], ...]


class Cursor:
    """A position inside a set of token sequences, moved forward one token at a time.

    `allowed`: the ids that keep the prefix inside the set, sorted; empty when a sequence is complete.

    Raises `ValueError` when the set is empty, holds an empty sequence, or holds one that is a prefix of another
    (then it is unclear whether the shorter one is complete).
    """

    __slots__ = ("_depth", "_high", "_low", "_sequences", "allowed")

    def __init__(self, choices: Sequence[Sequence[int]]) -> None:
        self._sequences = _ordered(tuple(tuple(choice) for choice in choices))
        self._low, self._high, self._depth = 0, len(self._sequences), 0
        self.allowed = self._next()

    @property
    def remaining(self) -> int:
        """How many of the distinct sequences begin with the tokens taken so far; 1: the rest is certain."""
        return self._high - self._low

    def advance(self, token: int) -> None:
        """Take `token`, which must be one of `allowed`; raises `ValueError` otherwise."""
        if token not in self.allowed:
            raise ValueError(f"token {token} is not among the allowed tokens {self.allowed}")
        while self._sequences[self._low][self._depth] < token:
            self._low += 1
        while self._sequences[self._high - 1][self._depth] > token:
            self._high -= 1
        self._depth += 1
        self.allowed = self._next()

    def _next(self) -> tuple[int, ...]:
        if self._depth == len(self._sequences[self._low]):
            return ()
        rows = self._sequences[self._low : self._high]
        return tuple(dict.fromkeys(row[self._depth] for row in rows))


@lru_cache(maxsize=4096)
def _ordered(choices: Sequences) -> Sequences:
    """The distinct sequences, sorted and checked. Cached, because the rollouts of one task offer the same choices."""
    ordered = tuple(sorted(set(choices)))
    if not ordered or not ordered[0]:
        raise ValueError("choices need at least one sequence, and every sequence at least one token")
    for shorter, longer in pairwise(ordered):
        if longer[: len(shorter)] == shorter:
            raise ValueError(
                f"choice {shorter} is a prefix of choice {longer}: end each with the end-of-turn id"
            )
    return ordered
