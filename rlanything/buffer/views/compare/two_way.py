"""The answer of `diff A B` as one JSON value. Text, Markdown, page and `--json` are made from it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np

from rlanything.buffer.fields import TaskBufferError
from rlanything.buffer.model import Lineage
from rlanything.buffer.views.columns.table import Table
from rlanything.buffer.views.compare import statistics
from rlanything.buffer.views.compare.changes import STATUSES, Changes, Status, changes
from rlanything.buffer.views.compare.reasons import REFUSED, Kin
from rlanything.buffer.views.compare.sides import Side, kin, sides
from rlanything.buffer.views.compare.slot_diff import slot_row
from rlanything.buffer.views.find.measurements import first_accuracies
from rlanything.buffer.views.find.source import Source
from rlanything.buffer.views.tasks.task_fields import find_field
from rlanything.core.errors import unknown
from rlanything.core.types import EventKind, Json

SCHEMA = 2
"""Version of the JSON that `diff --json` writes."""
ONLY = (
    "changed",
    *(status.value for status in STATUSES if status is not Status.UNCHANGED),
    "more than once",
    *(kind.value for kind in REFUSED),
)
"""The values of `--only`. The last ones are what became of a try."""

ENDS = ("rejected", "invalid", "pending")
"""What became of a try."""


def diff_page(a: Source, b: Source, *, only: str = "", by: str = "", details: bool = True) -> dict[str, Json]:
    """What changed from `a` to `b`. only: slots of one kind (see `ONLY`). by: the concentration of one field.

    details=False leaves the slots out; of Parquet files only the columns are read. Raises `TaskBufferError`.
    """
    if only and only not in ONLY:
        raise TaskBufferError(f"--only {only!r}: {unknown(only, ONLY)}")
    left, right = a.table, b.table
    left, later = _measured_later(left, a, b)
    found = changes(left, right)
    field = find_field(by, statistics.compared_fields(left, right)) if by else ""
    two, related = sides(a, b), kin(a, b)
    counted = _tries(two, related)
    partial = a.partial or (b.partial and later > 0), b.partial  # what was measured later, B's run tells
    page: dict[str, Json] = {
        "format": "rlanything buffer diff",
        "schema": SCHEMA,
        "a": _named(a, left),
        "b": _named(b, right),
        "counts": {**statistics.counts(found), **{end: (counted["b"] or {}).get(end) for end in ENDS}},
        "tries": counted,
        "difficulty": {
            **statistics.difficulty(found, a.rule, b.rule, partial=partial),
            "measured_later": later,
        },
        "concentration": _concentration(left, right, found, field),
        "by": field or None,
        "only": only or None,
    }
    return {**page, "slots": list(_rows(two, related, found, only)) if details else None}


def listed(page: dict[str, Any]) -> list[dict[str, Any]]:
    """The slots that text and Markdown show: without `--only`, those whose task changed."""
    rows: list[dict[str, Any]] = page["slots"] or []
    return [row for row in rows if page["only"] or row["status"] != Status.UNCHANGED]


def _measured_later(table: Table, a: Source, b: Source) -> tuple[Table, int]:
    """A's table with the accuracies that were measured only after A, taken from B's run; and how many there are."""
    missing = np.isnan(table.accuracy)
    if b.run is None or not missing.any():
        return table, 0
    known = first_accuracies(b.run, b.iteration)
    found = [
        known.get((lineage.slot, lineage.head.task.task_id), _noted_by(b, lineage)) if gap else np.nan
        for gap, lineage in zip(missing, a.buffer.lineages, strict=True)
    ]
    filled = np.where(missing, np.array(found, dtype=np.float64), table.accuracy)
    return replace(table, accuracy=filled), int(missing.sum() - np.isnan(filled).sum())


def _noted_by(b: Source, old: Lineage) -> float:
    """acc(q) of the task of `old`, as noted by the version that replaced it in B; nan if none did."""
    if old.slot not in b.buffer:
        return np.nan
    for before, after in pairwise(b.buffer.versions(old.slot)):
        if before.task.task_id == old.head.task.task_id and after.accuracy_before is not None:
            return after.accuracy_before
    return np.nan


def _tries(two: tuple[Side, Side], related: Kin) -> dict[str, Any]:
    """What became of each side's own tries. None where one side is a file: a file knows its tries, not their ends.

    None too for the earlier of two iterations of a run: all that it did the later one did.
    """
    if any(side.source.run is None for side in two):
        return {"a": None, "b": None}
    return {"a": None if related is Kin.FORWARD else two[0].tries, "b": two[1].tries}


def _named(source: Source, table: Table) -> dict[str, Json]:
    return {
        "name": source.name,
        "revision": source.revision or None,
        "iteration": source.iteration if source.run else None,
        "slots": len(table.slots),
        "versions": len(table.key),
        "band": {"low": source.rule.alpha_low, "high": source.rule.alpha_high},
    }


def _concentration(a: Table, b: Table, found: Changes, field: str) -> list[Json]:
    rows = statistics.concentration(a, b, found)
    return [row.to_json() for row in rows if not field or row.field == field]


def _rows(two: tuple[Side, Side], related: Kin, found: Changes, only: str) -> Iterator[dict[str, Json]]:
    """The slots whose history differs, ascending; with `only`, those of one kind."""
    a, b = (side.source for side in two)
    for place, slot in enumerate(found.slots.tolist()):
        old = a.buffer.lineage(slot) if found.row_a[place] >= 0 else None
        new = b.buffer.lineage(slot) if found.row_b[place] >= 0 else None
        tries = {event.kind for side in two for event in side.by_slot.get(slot, ())}
        if (old == new and not tries.intersection(REFUSED)) or not _wanted(found, place, only, tries):
            continue
        accuracy = (_number(found.old[place]), _number(found.new[place]))
        status = STATUSES[found.status[place]]
        yield slot_row(slot, status, old, new, accuracy, two, related)


def _wanted(found: Changes, place: int, only: str, tries: set[EventKind]) -> bool:
    if not only:
        return True
    if only == "changed":
        return bool(found.changed[place])
    if only == "more than once":
        return bool(found.more_than_once[place])
    return only in tries or STATUSES[found.status[place]] == only


def _number(value: float) -> float | None:
    return None if np.isnan(value) else float(value)
