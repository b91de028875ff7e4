"""Which items of two sequences are the same, in order: what diffs of words, sentences and lines are made from.

`difflib` takes the longest stretch that is the same, then looks before and behind it. That reads well, and it takes
minutes where many items are alike. So it is asked where its work is small, and otherwise as many items as can be are
the same (a longest common subsequence), which takes one step for 64 pairs of items whatever they are.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterator, Sequence
from difflib import SequenceMatcher

from rapidfuzz.distance import Indel

Range = tuple[int, int]
"""The first item, and the one behind the last."""
_STEPS = 300_000
"""Steps that `difflib` may take: some hundredths of a second."""


def stretches(old: Sequence[Hashable], new: Sequence[Hashable]) -> Iterator[tuple[bool, Range, Range]]:
    """Both sequences from start to end: whether a stretch is the same in both, and where it is in each."""
    i = j = 0
    for a, b, size in (_longest_first if is_small(old, new) else _most)(old, new):
        if a > i or b > j:
            yield False, (i, a), (j, b)
        if size:
            yield True, (a, a + size), (b, b + size)
        i, j = a + size, b + size


def is_small(old: Sequence[Hashable], new: Sequence[Hashable]) -> bool:
    """Whether `difflib` is fast, also in its worst case: it looks at all pairs of equal items for each stretch."""
    left, right = Counter(old), Counter(new)
    pairs = sum(count * right[item] for item, count in left.items())
    return (pairs + len(old)) * min(len(old), len(new)) <= _STEPS


def coded(*sequences: Sequence[Hashable]) -> list[list[int]]:
    """The sequences with a number for each item, the same for equal items: rapidfuzz compares hashes of other items."""
    numbers: dict[Hashable, int] = {}
    return [[numbers.setdefault(item, len(numbers)) for item in items] for items in sequences]


Block = tuple[int, int, int]
"""Where a stretch that is the same begins in each sequence, and its length. The last one is empty, at both ends."""


def _longest_first(old: Sequence[Hashable], new: Sequence[Hashable]) -> list[Block]:
    return [(m.a, m.b, m.size) for m in SequenceMatcher(None, old, new, autojunk=False).get_matching_blocks()]


def _most(old: Sequence[Hashable], new: Sequence[Hashable]) -> list[Block]:
    """What both begin and end with is the same in any case, so that one change comes out as one."""
    head = _common(old, new)
    tail = _common(old[head:][::-1], new[head:][::-1])
    before, after = coded(old[head : len(old) - tail], new[head : len(new) - tail])
    found = Indel.opcodes(before, after).as_matching_blocks()
    middle = [(head + m.a, head + m.b, m.size) for m in found]
    ends = (len(old) - tail, len(new) - tail, tail), (len(old), len(new), 0)
    return [(0, 0, head), *middle, *ends]


def _common(old: Sequence[Hashable], new: Sequence[Hashable]) -> int:
    """How many items both begin with."""
    differ = (k for k, (a, b) in enumerate(zip(old, new, strict=False)) if a != b)
    return next(differ, min(len(old), len(new)))
