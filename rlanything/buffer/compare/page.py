"""The whole answer of `diff A B` as one JSON value: the source of its text, Markdown, HTML and `--json`."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np

from rlanything.buffer.compare import statistics
from rlanything.buffer.compare.changes import STATUSES, Changes, Status, changes
from rlanything.buffer.compare.slots import slot_row
from rlanything.buffer.compare.table import Table, table_of
from rlanything.buffer.event import Event
from rlanything.buffer.facts import named
from rlanything.buffer.fields import TaskBufferError
from rlanything.buffer.measured import first_accuracies
from rlanything.buffer.model import Lineage
from rlanything.buffer.source import Source
from rlanything.core.types import EventKind, Json

SCHEMA = 1
"""Version of the JSON that `diff --json` writes."""
ONLY = ("changed", *(s.value for s in STATUSES if s is not Status.UNCHANGED), "more than once", "rejected")
"""What `--only` may ask for."""


def diff_page(a: Source, b: Source, *, only: str = "", by: str = "", details: bool = True) -> dict[str, Json]:
    """What changed from `a` to `b`. `only` keeps slots of one kind (see `ONLY`), `by` asks for one field's values.

    `details=False` leaves the slots out; it never reads whole tasks where the columns of a Parquet file will do.
    """
    if only and only not in ONLY:
        raise TaskBufferError(f"--only {only!r}: it must be one of {', '.join(ONLY)}")
    left, right = table_of(a), table_of(b)
    left, later = _measured_later(left, a, b)
    found = changes(left, right)
    events = new_events(a, b)
    page: dict[str, Json] = {
        "format": "rlanything buffer diff",
        "schema": SCHEMA,
        "a": _named(a, left),
        "b": _named(b, right),
        "counts": {**statistics.counts(found), **_refused(events)},
        "difficulty": {**statistics.difficulty(found, a.band, b.band), "measured_later": later},
        "concentration": _concentration(left, right, found, by),
        "by": named(by, left.kinds.columns) if by else None,
        "only": only or None,
    }
    return {**page, "slots": list(_rows(a, b, found, events, only)) if details else None}


def listed(page: dict[str, Any]) -> list[dict[str, Any]]:
    """The slots that a rendering shows: without `--only`, those whose task changed."""
    rows: list[dict[str, Any]] = page["slots"] or []
    return [row for row in rows if page["only"] or row["status"] != Status.UNCHANGED]


def differs(page: dict[str, Any]) -> bool:
    """Whether the comparison found anything: of the slots listed, or in the counts where none were asked for."""
    if page["slots"] is not None:
        return bool(page["slots"])
    counts = page["counts"]
    return bool(counts["slots"] != counts["unchanged"] or counts["tries"])


def new_events(a: Source, b: Source) -> tuple[Event, ...]:
    """What happened in B's run before B and is not in A's record before A, in order."""
    past = Counter(_identity(event) for event in a.events)
    fresh = []
    for event in b.events:
        if past[_identity(event)]:
            past[_identity(event)] -= 1
        else:
            fresh.append(event)
    return tuple(fresh)


def _identity(event: Event) -> tuple[object, ...]:
    task_id = event.task.task_id if event.task else None
    return event.kind, event.slot, event.iteration, event.parent_id, task_id, event.seed, event.reply


def _measured_later(table: Table, a: Source, b: Source) -> tuple[Table, int]:
    """A's accuracies, those that A's time did not know taken from B's record of the same tasks; and how many."""
    missing = np.isnan(table.accuracy)
    if b.run is None or not missing.any():
        return table, 0
    known = first_accuracies(b.run, b.iteration)
    found = [
        known.get((lineage.slot, lineage.head.task.task_id), _told_by(b, lineage)) if gap else np.nan
        for gap, lineage in zip(missing, a.buffer.lineages, strict=True)
    ]
    filled = np.where(missing, np.array(found, dtype=np.float64), table.accuracy)
    return replace(table, accuracy=filled), int(missing.sum() - np.isnan(filled).sum())


def _told_by(b: Source, old: Lineage) -> float:
    """acc(q) of the task that `old` has, as the version that followed it in B remembers it; nan if none does."""
    if old.slot not in b.buffer:
        return np.nan
    for before, after in pairwise(b.buffer.versions(old.slot)):
        if before.task.task_id == old.head.task.task_id and after.accuracy_before is not None:
            return after.accuracy_before
    return np.nan


def _named(source: Source, table: Table) -> dict[str, Json]:
    return {
        "name": source.name,
        "revision": source.revision or None,
        "iteration": source.iteration if source.run else None,
        "slots": len(table.slots),
        "versions": len(table.key),
        "band": {"low": source.band.low, "high": source.band.high},
    }


def _refused(events: Sequence[Event]) -> dict[str, int]:
    """Rejected: rolled out and refused. Invalid: refused before a rollout was spent. Pending: not decided yet."""
    kinds = Counter(event.kind for event in events)
    decided = kinds[EventKind.REJECTED] + kinds[EventKind.ACCEPTED]
    return {
        "rejected": kinds[EventKind.REJECTED],
        "invalid": kinds[EventKind.INVALID],
        "pending": max(0, kinds[EventKind.PROPOSED] - decided),
    }


def _concentration(a: Table, b: Table, found: Changes, by: str) -> list[Json]:
    rows = statistics.concentration(a, b, found)
    if by:
        field = named(by, a.kinds.columns)
        rows = [row for row in rows if row.field == field]
    return [row.to_json() for row in rows]


def _rows(
    a: Source, b: Source, found: Changes, events: Sequence[Event], only: str
) -> Iterator[dict[str, Json]]:
    """The slots whose history is not the same in both, ascending; with `only`, those of them that it names."""
    by_slot: dict[int, list[Event]] = defaultdict(list)
    for event in events:
        by_slot[event.slot].append(event)
    refused = {e.slot for e in events if e.kind in (EventKind.REJECTED, EventKind.INVALID)}
    for place, slot in enumerate(found.slots.tolist()):
        old = a.buffer.lineage(slot) if found.row_a[place] >= 0 else None
        new = b.buffer.lineage(slot) if found.row_b[place] >= 0 else None
        if (old == new and slot not in refused) or not _wanted(found, place, only, slot in refused):
            continue
        accuracy = (_number(found.old[place]), _number(found.new[place]))
        yield slot_row(slot, STATUSES[found.status[place]], old, new, accuracy, by_slot[slot])


def _wanted(found: Changes, place: int, only: str, refused: bool) -> bool:
    if not only:
        return True
    if only == "changed":
        return bool(found.changed[place])
    if only == "more than once":
        return bool(found.more_than_once[place])
    return refused if only == "rejected" else STATUSES[found.status[place]] == only


def _number(value: float) -> float | None:
    return None if np.isnan(value) else float(value)
