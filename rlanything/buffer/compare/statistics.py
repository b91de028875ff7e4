"""The summary of a comparison: counts, difficulty before and after, and where the change concentrates."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl

from rlanything.buffer.compare.changes import STATUSES, Changes
from rlanything.buffer.compare.table import Floats, Ints, Table
from rlanything.buffer.source import Band
from rlanything.core.types import Json

BINS = 10
"""Bars of the difficulty histogram, each a tenth wide; the last one includes 1."""


def counts(changes: Changes) -> dict[str, int]:
    """Slots by what became of them (these add up to `slots`), slots changed more than once, and new tries."""
    by_status = {status.value.replace(" ", "_"): int(changes.where(status).sum()) for status in STATUSES}
    return {
        "slots": len(changes.slots),
        **by_status,
        "more_than_once": int(changes.more_than_once.sum()),
        "tries": int(changes.tries.sum()),
    }


def difficulty(changes: Changes, band_a: Band, band_b: Band) -> dict[str, Json]:
    """Histograms of acc(q) over the slots, old and new, and the share of measured slots inside each one's band."""
    old, new = changes.old[changes.row_a >= 0], changes.new[changes.row_b >= 0]
    return {
        "edges": [number / BINS for number in range(BINS + 1)],
        "old": _histogram(old),
        "new": _histogram(new),
        "unmeasured": {"old": int(np.isnan(old).sum()), "new": int(np.isnan(new).sum())},
        "inside": {"old": _inside(old, band_a), "new": _inside(new, band_b)},
    }


def _histogram(accuracy: Floats) -> list[int]:
    measured = accuracy[~np.isnan(accuracy)]
    # A tenth more than a hair: 3 of 10 solved belongs to the bar that begins with 0.3.
    place = np.minimum((measured * BINS + 1e-9).astype(np.int64), BINS - 1)
    return [int(count) for count in np.bincount(place, minlength=BINS)]


def _inside(accuracy: Floats, band: Band) -> dict[str, Json]:
    measured = accuracy[~np.isnan(accuracy)]
    inside = int(((measured >= band.low) & (measured <= band.high)).sum())
    share = inside / len(measured) if len(measured) else None
    return {"slots": inside, "of": len(measured), "share": share, "low": band.low, "high": band.high}


FEWEST = 3
"""Tasks that a value must have to be compared: fewer cannot stand out, and would only blunt the others."""


@dataclass(frozen=True)
class Concentration:
    """Of the tasks whose field has this value, `changed` of `tasks` changed; `ratio` to the share of all that did.

    `p`: chance of as many when which tasks change has nothing to do with the field (hypergeometric), times the number
    of values compared, at most 1. Values of fewer than `FEWEST` tasks are not compared: their p is 1.
    """

    field: str
    value: str
    changed: int
    tasks: int
    ratio: float
    p: float

    def to_json(self) -> dict[str, Json]:
        """As a JSON object."""
        return {
            "field": self.field,
            "value": self.value,
            "changed": self.changed,
            "tasks": self.tasks,
            "ratio": self.ratio,
            "p": self.p,
        }


def concentration(a: Table, b: Table, changes: Changes) -> list[Concentration]:
    """Every value of every field that sorts A's tasks (B's, where only B has the slot) into kinds; least p first."""
    kinds, flags = _kinds(a, b, changes)
    changed, total = int(changes.changed.sum()), len(changes.slots)
    if not changed or changed == total:
        return []
    found = [row for field in kinds for row in _by_value(field, flags)]
    compared = sum(n >= FEWEST for *_, n in found)
    rows = [
        Concentration(
            field,
            value,
            k,
            n,
            k / n / (changed / total),
            min(1.0, compared * upper_tail(k, n, changed, total)) if n >= FEWEST else 1.0,
        )
        for field, value, k, n in found
    ]
    return sorted(rows, key=lambda row: (row.p, -row.ratio, row.field, row.value))


def _kinds(a: Table, b: Table, changes: Changes) -> tuple[list[pl.Series], pl.Series]:
    """One entry a slot: its fields, and whether it changed."""
    both = [name for name in a.kinds.columns if name in b.kinds.columns]
    names = both or a.kinds.columns or b.kinds.columns
    added = changes.row_a < 0
    flags = np.concatenate([changes.changed[~added], changes.changed[added]])
    parts = [_picked(a, changes.row_a[~added], names), _picked(b, changes.row_b[added], names)]
    return pl.concat(parts).get_columns(), pl.Series("changed", flags)


def _picked(table: Table, rows: Ints, names: list[str]) -> pl.DataFrame:
    """These rows of the fields; '-' for a field that the table has not."""
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


def upper_tail(k: int, n: int, changed: int, total: int) -> float:
    """P(at least `k` of `n` drawn are changed) when `changed` of `total` are: the hypergeometric upper tail."""
    low, high = max(0, n + changed - total), min(n, changed)
    if k <= low:
        return 1.0
    drawn: npt.NDArray[np.float64] = np.arange(k, high, dtype=np.float64)
    ratios = (changed - drawn) * (n - drawn) / ((drawn + 1) * (total - changed - n + drawn + 1))
    terms = np.concatenate([[0.0], np.cumsum(np.log(ratios))])
    first = _log_choose(changed, k) + _log_choose(total - changed, n - k) - _log_choose(total, n)
    return min(1.0, float(np.exp(first + terms).sum()))


def _log_choose(n: int, k: int) -> float:
    return math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1)
