"""The summary of a comparison: counts, difficulty before and after, and where the change concentrates."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass

import numpy as np
import polars as pl

from rlanything.buffer.views.columns.table import Floats, Ints, Table
from rlanything.buffer.views.compare.changes import STATUSES, Changes
from rlanything.core.adaptation import AcceptanceRule
from rlanything.core.types import Json

BINS = 10
"""Bars of the difficulty histogram, each 0.1 wide. The last one includes 1."""


def counts(changes: Changes) -> dict[str, int]:
    """Slots by status (these add up to `slots`), slots that changed more than once, and new tries."""
    by_status = {status.value.replace(" ", "_"): int(changes.where(status).sum()) for status in STATUSES}
    return {
        "slots": len(changes.slots),
        **by_status,
        "more_than_once": int(changes.more_than_once.sum()),
        "tries": int(changes.tries.sum()),
    }


def difficulty(
    changes: Changes,
    rule_a: AcceptanceRule,
    rule_b: AcceptanceRule,
    *,
    partial: tuple[bool, bool] = (False, False),
) -> dict[str, Json]:
    """Histograms of acc(q) over the slots, old and new, and the share of measured slots inside each one's band.

    partial: whether the accuracies of A, of B are too few for a share (`Source.partial`); it is null then.
    """
    old, new = changes.old[changes.row_a >= 0], changes.new[changes.row_b >= 0]
    return {
        "edges": [number / BINS for number in range(BINS + 1)],
        "old": _histogram(old),
        "new": _histogram(new),
        "unmeasured": {"old": int(np.isnan(old).sum()), "new": int(np.isnan(new).sum())},
        "inside": {"old": _inside(old, rule_a, partial[0]), "new": _inside(new, rule_b, partial[1])},
    }


def _histogram(accuracy: Floats) -> list[int]:
    measured = accuracy[~np.isnan(accuracy)]
    # 0.3 * 10 may be a little less than 3; 3 of 10 solved belongs to the bar that begins at 0.3.
    place = np.minimum((measured * BINS + 1e-9).astype(np.int64), BINS - 1)
    return [int(count) for count in np.bincount(place, minlength=BINS)]


def _inside(accuracy: Floats, rule: AcceptanceRule, partial: bool) -> dict[str, Json]:
    if partial:
        return {"slots": None, "of": None, "share": None, "low": rule.alpha_low, "high": rule.alpha_high}
    measured, low, high = accuracy[~np.isnan(accuracy)], rule.alpha_low, rule.alpha_high
    inside = int(((measured >= low) & (measured <= high)).sum())
    share = inside / len(measured) if len(measured) else None
    return {"slots": inside, "of": len(measured), "share": share, "low": low, "high": high}


FEWEST = 3
"""Least tasks of a value that is compared. Fewer cannot be significant, and every comparison raises the others' p."""


@dataclass(frozen=True)
class Concentration:
    """Of the tasks whose field has this value, `changed` of `tasks` changed. ratio: to the share of all slots.

    p: the probability of as many changes if change and field are independent (hypergeometric), times the number of
    values compared, at most 1. Values of fewer than `FEWEST` tasks are not compared; their p is 1.
    """

    field: str
    value: str
    changed: int
    tasks: int
    ratio: float
    p: float

    def to_json(self) -> dict[str, Json]:
        """As a JSON object."""
        return asdict(self)


def concentration(a: Table, b: Table, changes: Changes) -> list[Concentration]:
    """Every value of every field that sorts A's tasks into kinds (B's, if only B has the slot); least p first."""
    kinds, flags = _kinds(a, b, changes)
    changed, total = int(changes.changed.sum()), len(changes.slots)
    if not changed or changed == total:
        return []
    found = [row for field in kinds for row in _by_value(field, flags)]
    chances = _chances([(k, n) for *_, k, n in found], changed, total)
    rows = [
        Concentration(field, value, k, n, k / n / (changed / total), p)
        for (field, value, k, n), p in zip(found, chances, strict=True)
    ]
    return sorted(rows, key=lambda row: (row.p, -row.ratio, row.field, row.value))


def compared_fields(a: Table, b: Table) -> list[str]:
    """The fields that `concentration` compares: those that sort both buffers' tasks into kinds; if none do, one's."""
    both = [name for name in a.kinds.columns if name in b.kinds.columns]
    return both or a.kinds.columns or b.kinds.columns


def _kinds(a: Table, b: Table, changes: Changes) -> tuple[list[pl.Series], pl.Series]:
    """One entry a slot: its fields, and whether it changed."""
    names = compared_fields(a, b)
    added = changes.row_a < 0
    flags = np.concatenate([changes.changed[~added], changes.changed[added]])
    parts = [_picked(a, changes.row_a[~added], names), _picked(b, changes.row_b[added], names)]
    return pl.concat(parts).get_columns(), pl.Series("changed", flags)


def _picked(table: Table, rows: Ints, names: list[str]) -> pl.DataFrame:
    """These rows of the fields; '-' for a field that the table lacks."""
    known = {name: table.kinds[name] for name in names if name in table.kinds.columns}
    whole = len(rows) == len(table.slots)
    columns = {
        name: (known[name] if whole else known[name][rows]) if name in known else ["-"] * len(rows)
        for name in names
    }
    return pl.DataFrame(columns, schema=dict.fromkeys(names, pl.String))


def _by_value(field: pl.Series, flags: pl.Series) -> list[tuple[str, str, int, int]]:
    # A field of a task may be called anything, so the columns get names of their own.
    frame = pl.DataFrame({"value": field, "changed": flags})
    grouped = frame.group_by("value").agg(pl.col("changed").sum().cast(pl.Int64), pl.len().alias("tasks"))
    return [(field.name, value, k, n) for value, k, n in grouped.iter_rows()]


def _chances(counts: Sequence[tuple[int, int]], changed: int, total: int) -> list[float]:
    """`Concentration.p` of each (changed, tasks)."""
    from scipy.stats import hypergeom  # takes a second to import, and most commands do without

    k, n = np.array(counts, dtype=np.int64).reshape(-1, 2).T
    tails = hypergeom.sf(k - 1, total, changed, n)  # P(at least k of n drawn are changed)
    enough = n >= FEWEST
    return [float(p) for p in np.where(enough, np.minimum(1.0, enough.sum() * tails), 1.0)]
