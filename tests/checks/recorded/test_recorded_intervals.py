"""Every interval that the pages name is that of a recorded result."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest
from recorded_cases import CHECKS, ROOT, SUCCESS, pool_rows, said

from rlanything.checks.pooling.random_effects import pooled
from rlanything.report.results import statistics
from rlanything.report.results.evaluations import read_evaluation

NOT_RECORDED = {
    "README.md": 0,
    "docs/studies.md": 0,
    "docs/study_records.md": 5,  # two paragraphs `Tried before`
    "docs/check_results.md": 0,
    "docs/default_experiment.md": 4,  # an earlier recording
    "docs/coding.md": 1,  # an earlier default
    "docs/gui.md": 0,
}
"""How many intervals a page names of results that were not kept. The page says so beside each."""
Triple = tuple[str, str, str]


def points(mean: float, low: float, high: float) -> set[Triple]:
    """A mean and its interval as pages write them, signs left out of the mean, and the same the other way round."""
    return {
        (one(abs(mean)), one(sign * ends[0]), one(sign * ends[1]))
        for sign, ends in ((1, (low, high)), (-1, (high, low)))
    }


def one(value: float) -> str:
    return f"{value:.1f}".replace("-0.0", "0.0")


def stored(value: Any) -> Iterator[Triple]:
    """Every mean with an interval in JSON: of shares in percent, of counts as they are."""
    if isinstance(value, dict):
        ends = [value.get(key) for key in ("mean", "low", "high")]
        if all(isinstance(end, float) for end in ends):
            scale = 1.0 if max(map(abs, ends)) > 1.5 else 100.0
            yield from points(*(scale * end for end in ends))
    for part in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from stored(part)


def compared(folder: Path) -> Iterator[Triple]:
    """The differences in success of all pairs of arms of a check."""
    arms = [read_evaluation(path, path.stem) for path in sorted(folder.glob("*.json"))]
    for left, right in combinations(arms, 2):
        for metric in SUCCESS:
            if (
                metric in left
                and metric in right
                and (found := statistics.contrast(left[metric], right[metric]))
            ):
                ends = found.difference
                if ends.low is not None and ends.high is not None:
                    yield from points(*(100 * end for end in (ends.mean, ends.low, ends.high)))


def with_the_others(metric: str) -> tuple[float, float, float]:
    """The mean of `policy` over `outcome` in points, with the experiments that are not pooled."""
    row = next(r for r in pool_rows() if (r["arm"], r["over"], r["metric"]) == ("policy", "outcome", metric))
    every = row["differences"] + row["others"]
    mean = pooled([one["mean"] for one in every], [one["error"] ** 2 for one in every]).mean
    return 100 * mean.mean, 100 * mean.low, 100 * mean.high


@pytest.fixture(scope="module")
def recorded() -> set[Triple]:
    files = [*CHECKS.glob("*/*.json"), *(ROOT / "report").glob("**/*.json")]
    found = {triple for file in files for triple in stored(json.loads(file.read_text()))}
    for folder in CHECKS.glob("*/evaluation"):
        found |= set(compared(folder))
    for page in (ROOT / "report").glob("**/report.md"):  # its JSON has four digits only
        found |= {
            (x[0].lstrip("+-"), *(end.lstrip("+") for end in x[1:])) for x in CELL.findall(page.read_text())
        }
    return found.union(*(points(*with_the_others(metric)) for metric in SUCCESS[:2]))


NUMBER = r"[+-]?\d+\.\d+"
CELL = re.compile(rf"({NUMBER}) \[({NUMBER}), ({NUMBER})\]")
INTERVAL = re.compile(rf"(?:({NUMBER})[^\d\[\]|]{{0,60}})?\[({NUMBER}), ({NUMBER})\]")


@pytest.mark.parametrize("page", NOT_RECORDED)
def test_every_interval_is_that_of_a_recorded_result(page, recorded):
    """With the number before it, where one stands before it."""
    known = {(low, high) for _, low, high in recorded}
    found = [
        tuple(x.lstrip("+") for x in match.groups(default="")) for match in INTERVAL.finditer(said(page))
    ]
    assert len(found) >= 4
    wrong = [
        (mean, low, high)
        for mean, low, high in found
        if ((low, high) not in known if not mean else (mean.lstrip("-"), low, high) not in recorded)
    ]
    assert len(wrong) == NOT_RECORDED[page], wrong
