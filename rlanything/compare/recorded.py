"""What a report recorded: report/summary.json and report/plots/learning.csv, which may be anybody's.

Git has both of every revision, while evaluations and runs may be in no cache. Every field is checked; what does not fit
is refused by its name.
"""

from __future__ import annotations

import csv
import io
import math
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, Field, RootModel, ValidationError

from rlanything.core.records.forms import first_error
from rlanything.files.reader import FileError, read_json, read_text
from rlanything.report.exports import COLUMNS
from rlanything.report.exports import CURVES as TRAINED
from rlanything.report.results.curves import Curves
from rlanything.report.results.metrics import named
from rlanything.report.results.statistics import Estimate

SUMMARY, CURVES = "report/summary.json", "report/plots/learning.csv"
_MOST_ROWS = 2_000_000
Number = Annotated[float, Field(allow_inf_nan=False)]


class Cell(BaseModel):
    """One metric of one arm."""

    mean: Number
    low: Number | None = None
    high: Number | None = None


Row = Annotated[dict[str, Cell], Field(max_length=200)]


class Summary(RootModel[Annotated[dict[str, Row], Field(max_length=100)]]):
    """arm -> metric -> its mean with the ends of its interval."""


def read_summary(path: Path) -> dict[str, dict[str, Estimate]]:
    """arm -> metric -> estimate. Raises `FileError`."""
    try:
        found = Summary.model_validate(read_json(path)).root
    except ValidationError as error:
        raise FileError(f"{SUMMARY}: {first_error(error)}") from None
    return {
        arm: {name: Estimate(c.mean, c.low, c.high) for name, c in row.items()} for arm, row in found.items()
    }


def read_learning(path: Path) -> Curves:
    """The curves, under the keys of metrics.jsonl. Raises `FileError` naming the line."""
    curves: Curves = {}
    rows = csv.reader(io.StringIO(read_text(path)))
    names = {name: key for key, name in TRAINED.items()}
    try:
        if tuple(next(rows, ())) != COLUMNS:
            raise ValueError(f"the columns must be {', '.join(COLUMNS)}")
        for number, row in enumerate(rows, start=2):
            if number > _MOST_ROWS:
                raise ValueError(f"more than {_MOST_ROWS:,} lines")
            arm, name, value = row[0], row[3], float(row[4])
            seed, iteration = _count(row[1]), _count(row[2])
            if not math.isfinite(value):
                raise ValueError(f"{row[4][:40]!r} is no number")
            key = names.get(name) or named(name).curve
            curves.setdefault(arm, {}).setdefault(seed, {}).setdefault(key, {})[iteration] = value
    except (ValueError, IndexError, csv.Error) as error:
        raise FileError(f"{CURVES}, line {rows.line_num}: {error}") from None
    return curves


def _count(text: str) -> int:
    """The number of a seed or an iteration. Raises `ValueError`."""
    if not (text.isascii() and text.isdecimal() and len(text) < 10):
        raise ValueError(f"{text[:40]!r} is no number of a seed or an iteration")
    return int(text)
