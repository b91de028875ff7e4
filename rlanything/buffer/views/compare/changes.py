"""What became of every slot between two buffers, computed column by column.

Two lineages share their first versions. The way from A's task to B's undoes A's later versions and then makes B's. To
undo a harder version is a step to an easier task. Between two iterations of one run nothing is undone.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

import numpy as np
import numpy.typing as npt

from rlanything.buffer.views.columns.table import Floats, Ints, Table

Bools = npt.NDArray[np.bool_]


class Status(StrEnum):
    """What became of a slot. Every slot has exactly one status."""

    UNCHANGED = "unchanged"
    """The same task."""
    HARDER = "harder"
    """Another task; all steps were to a harder task."""
    EASIER = "easier"
    """Another task; all steps were to an easier task."""
    BOTH_WAYS = "both ways"
    """Another task; some steps harder, some easier."""
    REPLACED = "replaced"
    """Another task, from another v0."""
    ADDED = "added"
    """Only the second buffer has the slot."""
    REMOVED = "removed"
    """Only the first buffer has the slot."""


STATUSES = tuple(Status)


@dataclass(frozen=True)
class Changes:
    """One entry for each slot of either buffer, ascending. row_a, row_b: its row in each table, -1 for none.

    status: index into `STATUSES`. undone, made: numbers of versions of A only, of B only. tries: tasks proposed after A
    that never became a version. old, new: acc(q) of the two tasks.
    """

    slots: Ints
    row_a: Ints
    row_b: Ints
    status: npt.NDArray[np.int8]
    undone: Ints
    made: Ints
    tries: Ints
    old: Floats
    new: Floats

    def where(self, status: Status) -> Bools:
        """A mask of the slots with this status."""
        return self.status == STATUSES.index(status)

    @property
    def changed(self) -> Bools:
        """Slots whose task is not the same, or that only one buffer has."""
        return ~self.where(Status.UNCHANGED)

    @property
    def more_than_once(self) -> Bools:
        """Changed slots of both buffers whose task took more than one step. To replace a v0 by another is one step."""
        both = (self.row_a >= 0) & (self.row_b >= 0)
        return self.changed & both & (self.undone + self.made - self.where(Status.REPLACED) > 1)


def changes(a: Table, b: Table) -> Changes:
    """What became of every slot of either buffer."""
    slots = np.union1d(a.slots, b.slots)
    row_a, row_b = _rows(a, slots), _rows(b, slots)
    count_a, count_b = _counts(a, row_a), _counts(b, row_b)
    common = _common(a, b, row_a, row_b, np.minimum(count_a, count_b))
    harder = _steps(b, row_b, common, 1) + _steps(a, row_a, common, -1)
    easier = _steps(b, row_b, common, -1) + _steps(a, row_a, common, 1)
    status = np.full(len(slots), STATUSES.index(Status.BOTH_WAYS), dtype=np.int8)
    for kind, mask in (
        (Status.HARDER, easier == 0),
        (Status.EASIER, (harder == 0) & (easier > 0)),
        (Status.REPLACED, common == 0),
        (Status.UNCHANGED, _same_head(a, b, row_a, row_b)),
        (Status.ADDED, row_a < 0),
        (Status.REMOVED, row_b < 0),
    ):
        status[mask] = STATUSES.index(kind)
    return Changes(
        slots=slots,
        row_a=row_a,
        row_b=row_b,
        status=status,
        undone=count_a - common,
        made=count_b - common,
        tries=_new_tries(a, b, slots),
        old=_picked(a.accuracy, row_a),
        new=_picked(b.accuracy, row_b),
    )


def _rows(table: Table, slots: Ints) -> Ints:
    place = np.searchsorted(table.slots, slots)
    found = np.zeros(len(slots), dtype=bool)
    inside = place < len(table.slots)
    found[inside] = table.slots[place[inside]] == slots[inside]
    return np.where(found, place, -1)


def _counts(table: Table, rows: Ints) -> Ints:
    counts = np.append(np.diff(table.start), 0)  # row -1 finds the 0 at the end
    return counts[rows]


def _common(a: Table, b: Table, row_a: Ints, row_b: Ints, most: Ints) -> Ints:
    """How many versions are the same in both, from v0 on."""
    common = most.copy()
    owners = np.flatnonzero(most > 0)
    for number in range(int(most.max(initial=0))):  # as many rounds as the longest lineage has versions
        owners = owners[most[owners] > number]
        same = a.key[a.start[row_a[owners]] + number] == b.key[b.start[row_b[owners]] + number]
        common[owners[~same]] = number
        owners = owners[same]
    return common


def _steps(table: Table, rows: Ints, common: Ints, way: int) -> Ints:
    """The number of versions after the common ones with this direction."""
    sums = np.concatenate([[0], np.cumsum(table.way == way, dtype=np.int64)])
    steps = np.zeros(len(rows), dtype=np.int64)
    here = rows >= 0
    last = table.start[rows[here] + 1]
    steps[here] = sums[last] - sums[table.start[rows[here]] + common[here]]
    return steps


def _same_head(a: Table, b: Table, row_a: Ints, row_b: Ints) -> Bools:
    both = (row_a >= 0) & (row_b >= 0)
    same = np.zeros(len(both), dtype=bool)
    same[both] = a.key[a.start[row_a[both] + 1] - 1] == b.key[b.start[row_b[both] + 1] - 1]
    return same


def _picked(values: Floats, rows: Ints) -> Floats:
    return np.append(values, np.nan)[rows]


def _new_tries(a: Table, b: Table, slots: Ints) -> Ints:
    # A slot's number is mixed into the key, so that one search serves all slots.
    fresh = ~np.isin(_mixed(b.tried_slot, b.tried_key), _mixed(a.tried_slot, a.tried_key))
    return np.bincount(np.searchsorted(slots, b.tried_slot[fresh]), minlength=len(slots)).astype(np.int64)


def _mixed(slots: Ints, keys: Ints) -> npt.NDArray[np.uint64]:
    return keys.astype(np.uint64) + slots.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
