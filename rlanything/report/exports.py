"""The report's numbers for programs: headline.json for `dvc metrics`, summary.json, plots/learning.csv for `dvc plots`.

headline.json: arm -> metric -> mean, a dozen numbers, so that tables of experiments can be read. Of the base and of
every arm it has the policy's success, and what else an arm changes: its reward model, its tasks. Not the cooled base.

summary.json has all of it: arm -> metric -> {mean, low, high, vs_base: {mean, low, high, p}}, in the order of the
tables. Shares are fractions between 0 and 1, counts are numbers. low and high are null where no interval can be given
(a count from one seed, a share that is the same on every task); vs_base is null for the base, and when nothing pairs;
its p is Holm's over the arms. Success has `vs` beside it, where an arm is compared with others too: other arm -> the
same four values; p is Holm's over the question (`results/questions.py`). All numbers are rounded, so equal inputs give
equal bytes.
"""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Sequence
from typing import Any

from rlanything.config import BASE_COOLED, Config
from rlanything.report.results.comparison import Cell, Cells
from rlanything.report.results.curves import Curves
from rlanything.report.results.metrics import Metric, metrics_for
from rlanything.report.results.statistics import Contrast, Estimate

HEADLINE_DIGITS = 4
SUMMARY_DIGITS = 6
"""So many that percent with one decimal, rounded from them, are those of report.md."""
CURVE_DIGITS = 6
COLUMNS = ("arm", "seed", "iteration", "metric", "value")
CURVES = {
    "tokens_before": "tokens",
    "accuracy": "train_accuracy",
    "band_coverage": "band_coverage",
    "accepted_accuracy": "accepted_accuracy",
    "response_tokens": "response_tokens",
    "mu": "mu",
    "mean_vote": "mean_vote",
    "ut": "train_ut",
    "detect": "train_detect",
    "invalid_tests": "invalid_tests",
}
"""Key of metrics.jsonl -> name in the column `metric`, of what is only measured while training."""


def summary_json(cells: Cells) -> str:
    """The content of summary.json."""
    data = {arm: {metric: _cell(cell) for metric, cell in row.items()} for arm, row in cells.items()}
    return json.dumps(data, indent=2, allow_nan=False) + "\n"


def headline_json(config: Config, cells: Cells) -> str:
    """The content of headline.json."""
    metrics = metrics_for(config)
    rows = {
        arm: [metric.name for metric in metrics if metric.name in row and _is_headline(metric, config, arm)]
        for arm, row in cells.items()
        if arm != BASE_COOLED
    }
    data = {
        arm: {name: _round(cells[arm][name].value.mean, HEADLINE_DIGITS) for name in names}
        for arm, names in rows.items()
    }
    return json.dumps(data, indent=2, allow_nan=False) + "\n"


def _is_headline(metric: Metric, config: Config, name: str) -> bool:
    if metric.is_success:
        return True
    arm = config.arms.get(name)
    changes = arm is not None and (arm.train_reward if metric.is_share else arm.adapt)
    return metric.headline and changes


def _cell(cell: Cell) -> dict[str, Any]:
    found: dict[str, Any] = {
        **_estimate(cell.value),
        "vs_base": None if cell.vs_base is None else _against(cell.vs_base),
    }
    return found | ({"vs": {other: _against(c) for other, c in cell.vs.items()}} if cell.vs else {})


def _against(contrast: Contrast) -> dict[str, float | None]:
    return {**_estimate(contrast.difference), "p": _round(contrast.p)}


def _estimate(value: Estimate) -> dict[str, float | None]:
    return {"mean": _round(value.mean), "low": _round(value.low), "high": _round(value.high)}


def _round(number: float | None, digits: int = SUMMARY_DIGITS) -> float | None:
    return None if number is None else round(number, digits) + 0.0  # + 0.0 turns -0.0 into 0.0


def learning_csv(curves: Curves, metrics: Sequence[Metric]) -> str:
    """The content of learning.csv, the curves in long form; a value that is not finite is left out."""
    names = {metric.curve: metric.name for metric in metrics} | CURVES
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(COLUMNS)
    for arm, runs in curves.items():
        for seed, run in runs.items():
            for key, name in names.items():
                for iteration, value in run.get(key, {}).items():
                    if math.isfinite(value):
                        writer.writerow((arm, seed, iteration, name, round(value, CURVE_DIGITS)))
    return stream.getvalue()
