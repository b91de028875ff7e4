"""Lists of pairs of texts in a task's payload, such as the tests of a programming problem: what became of each pair.

A pair is what it was asked and what was to come of it. Two pairs that begin alike are about the same thing: where only
the second text differs, the pair was changed, not removed and added.
"""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from rlanything.core.types import Json

Pair = tuple[str, str]


class Fate(StrEnum):
    """What became of a pair."""

    KEPT = "kept"
    CHANGED = "changed"
    """The same first text, another second one."""
    ADDED = "added"
    REMOVED = "removed"


@dataclass(frozen=True, slots=True)
class PairChange:
    """One pair. `old`, `new`: its second text; `old_at`, `new_at`: its place in each list, from 1; None: not there."""

    fate: Fate
    first: str
    old: str | None = None
    new: str | None = None
    old_at: int | None = None
    new_at: int | None = None

    def to_json(self) -> dict[str, Json]:
        """As a JSON object."""
        told = {"fate": self.fate.value, "first": self.first, "old": self.old, "new": self.new}
        return {**told, "old_at": self.old_at, "new_at": self.new_at}


def as_pairs(value: Json) -> tuple[Pair, ...] | None:
    """The pairs of a list that holds pairs of texts and nothing else, at least one; None for any other value."""
    if not isinstance(value, list | tuple) or not value:
        return None
    if all(isinstance(item, list | tuple) and [type(part) for part in item] == [str, str] for item in value):
        return tuple((item[0], item[1]) for item in value)
    return None


def pair_changes(old: Sequence[Pair], new: Sequence[Pair]) -> list[PairChange]:
    """What became of every pair, in the order of the new list, then those that are gone.

    Equal pairs are kept, wherever they stand. Of the rest, those with the same first text are changed.
    """
    kept = _matched(range(len(old)), range(len(new)), old.__getitem__, new.__getitem__)
    gone = [i for i in range(len(old)) if i not in kept.values()]
    come = [j for j in range(len(new)) if j not in kept]
    changed = _matched(gone, come, lambda i: old[i][0], lambda j: new[j][0])
    left = {**kept, **changed}
    told = [_change(old, new, left.get(j), j) for j in range(len(new))]
    return told + [_change(old, new, i, None) for i in gone if i not in changed.values()]


def tally(changes: Iterable[PairChange]) -> dict[str, int]:
    """How many pairs met each fate."""
    counts = Counter(change.fate for change in changes)
    return {fate.value: counts[fate] for fate in Fate}


def _matched(
    old: Iterable[int],
    new: Iterable[int],
    old_key: Callable[[int], Hashable],
    new_key: Callable[[int], Hashable],
) -> dict[int, int]:
    """New places with the old place of the same key, each old one used once, in order."""
    places: dict[Hashable, deque[int]] = defaultdict(deque)
    for i in old:
        places[old_key(i)].append(i)
    return {j: places[new_key(j)].popleft() for j in new if places[new_key(j)]}


def _change(old: Sequence[Pair], new: Sequence[Pair], i: int | None, j: int | None) -> PairChange:
    before, after = None if i is None else old[i], None if j is None else new[j]
    fate = Fate.ADDED if before is None else Fate.REMOVED if after is None else Fate.CHANGED
    return PairChange(
        Fate.KEPT if before == after else fate,
        (after or before or ("", ""))[0],
        before and before[1],
        after and after[1],
        None if i is None else i + 1,
        None if j is None else j + 1,
    )
