"""report/plots/learning.csv: the curves in long form, for `dvc plots`."""

from __future__ import annotations

import csv
import io
import math

from rlanything.report.records import Curves

COLUMNS = ("arm", "seed", "iteration", "metric", "value")
KEYS = {
    "panel/in_domain": "in_domain",
    "panel/out_of_domain": "out_of_domain",
    "panel/rm_process": "rm_process",
    "panel/rm_outcome": "rm_outcome",
    "panel/ut": "ut",
    "panel/detect": "detect",
    "accepted_total": "accepted_tasks",
    "accuracy": "train_accuracy",
    "band_coverage": "band_coverage",
    "mu": "mu",
    "mean_vote": "mean_vote",
    "ut": "train_ut",
    "detect": "train_detect",
    "invalid_tests": "invalid_tests",
}
"""Key of metrics.jsonl -> name in the column `metric`."""
DIGITS = 6


def text(curves: Curves) -> str:
    """The file's content; a value that is not finite is left out."""
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(COLUMNS)
    for arm, runs in curves.items():
        for seed, run in runs.items():
            for key, name in KEYS.items():
                for iteration, value in run.get(key, {}).items():
                    if math.isfinite(value):
                        writer.writerow((arm, seed, iteration, name, round(value, DIGITS)))
    return stream.getvalue()
