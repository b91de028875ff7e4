"""report/summary.json: the numbers for programs, `dvc metrics show` and `dvc metrics diff`.

arm -> metric -> {mean, low, high, vs_base: {mean, low, high}}, in the order of the tables. Accuracies are fractions
between 0 and 1, accepted_tasks is a count; everything is rounded to `DIGITS` digits, so equal inputs give equal bytes.
low and high are null where no interval can be given (a count from one seed); vs_base is null when nothing pairs.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from rlanything.report.statistics import Estimate
from rlanything.report.study import Cell

DIGITS = 4


def text(cells: Mapping[str, Mapping[str, Cell]]) -> str:
    """The file's content."""
    data = {arm: {metric: _cell(cell) for metric, cell in row.items()} for arm, row in cells.items()}
    return json.dumps(data, indent=2, allow_nan=False) + "\n"


def _cell(cell: Cell) -> dict[str, Any]:
    return {**_estimate(cell.value), "vs_base": None if cell.vs_base is None else _estimate(cell.vs_base)}


def _estimate(value: Estimate) -> dict[str, float | None]:
    return {"mean": _round(value.mean), "low": _round(value.low), "high": _round(value.high)}


def _round(number: float | None) -> float | None:
    return None if number is None else round(number, DIGITS) + 0.0  # + 0.0 turns -0.0 into 0.0
