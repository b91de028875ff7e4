"""Lists of pairs of texts in a task's payload, such as a program's tests (input, expected output), and how they differ.

Two pairs with the same first text are about the same thing: if only the second text differs, the pair was changed, not
removed and added.
"""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import asdict, dataclass
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
    """One pair. old, new: its second text. old_at, new_at: its place in each list, from 1. None: not in that list."""

    fate: Fate
    first: str
    old: str | None
    new: str | None
    old_at: int | None
    new_at: int | None

    def to_json(self) -> dict[str, Json]:
        """As a JSON object."""
        return {**asdict(self), "fate": self.fate.value}


def as_pairs(value: Json) -> tuple[Pair, ...] | None:
    """The pairs of a list of one or more pairs of texts; None for any other value."""
    if not isinstance(value, list | tuple) or not value:
        return None
    if all(isinstance(item, list | tuple) and [type(part) for part in item] == [str, str] for item in value):
        return tuple((item[0], item[1]) for item in value)
    return None


def pair_changes(old: Sequence[Pair], new: Sequence[Pair]) -> list[PairChange]:
    """What became of every pair: those of the new list in order, then the removed ones.

    Equal pairs are kept, wherever they stand. Of the rest, those with the same first text are changed.
    """
    kept = _matched(range(len(old)), range(len(new)), old.__getitem__, new.__getitem__)
    used = set(kept.values())
    gone = [i for i in range(len(old)) if i not in used]
    come = [j for j in range(len(new)) if j not in kept]
    changed = _matched(gone, come, lambda i: old[i][0], lambda j: new[j][0])
    left = {**kept, **changed}
    rows = [_change(old, new, left.get(j), j) for j in range(len(new))]
    used.update(changed.values())
    return rows + [_change(old, new, i, None) for i in gone if i not in used]


def tally(changes: Iterable[PairChange]) -> dict[str, int]:
    """The number of pairs of each fate."""
    counts = Counter(change.fate for change in changes)
    return {fate.value: counts[fate] for fate in Fate}


def _matched(
    old: Iterable[int],
    new: Iterable[int],
    old_key: Callable[[int], Hashable],
    new_key: Callable[[int], Hashable],
) -> dict[int, int]:
    """new place -> old place of the same key. Each old place is used once, in order."""
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
