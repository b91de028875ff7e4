"""What follows from a difference."""

from __future__ import annotations

import numpy as np
import pytest

from rlanything.checks.study.verdict import Verdict, both_tests
from rlanything.report.results.statistics import Panel


def panel(*values: tuple[float, ...]) -> Panel:
    """Shares of solved games, one tuple a seed."""
    hits = np.array([values], dtype=np.float64)
    tasks = tuple(f"t{k}" for k in range(hits.shape[2]))
    return Panel(tuple(range(len(values))), tasks, hits, np.ones_like(hits))


def around(mean: float, noise: float) -> Panel:
    """8 seeds and 40 games whose shares scatter around `mean`."""
    cells = mean + noise * np.random.default_rng(0).standard_normal((8, 40))
    return panel(*map(tuple, cells - cells.mean() + mean))


@pytest.mark.parametrize(
    ("mean", "noise", "expected"),
    [
        (0.10, 0.1, Verdict.HOLDS),
        (-0.10, 0.1, Verdict.REVERSED),
        (0.0, 0.01, Verdict.TOO_SMALL),
        (0.015, 0.01, Verdict.SMALL),
        (0.02, 0.9, Verdict.OPEN),
        (-0.02, 0.9, Verdict.OPEN),
    ],
)
def test_a_verdict_follows_from_both_tests(mean, noise, expected):
    found = both_tests({"one": (around(0.5 + mean, noise), around(0.5, 0.0))}, {"one": 0.03})["one"]
    assert found.contrast.difference.mean == pytest.approx(mean)
    assert found.verdict(0.05) is expected


def test_more_of_the_same_data_never_turns_a_refuted_hypothesis_into_one_that_matters():
    for noise in (0.001, 0.003, 0.01, 0.03, 0.1):
        found = both_tests({"one": (around(0.51, noise), around(0.5, 0.0))}, {"one": 0.03})["one"]
        assert found.verdict(0.05) in (Verdict.SMALL, Verdict.TOO_SMALL, Verdict.OPEN)


def test_equal_seeds_and_games_prove_nothing():
    same = both_tests({"one": (panel((1, 1), (1, 1)), panel((0, 0), (0, 0)))}, {"one": 0.03})["one"]
    assert same.contrast.p is None
    assert same.verdict(0.05) is Verdict.OPEN


def test_what_could_not_be_measured_counts_in_the_correction():
    pair = (around(0.6, 0.6), around(0.5, 0.0))
    alone = both_tests({"one": pair}, {"one": 0.03})["one"]
    three = both_tests(
        {"one": pair, "two": None, "three": None}, dict.fromkeys(("one", "two", "three"), 0.03)
    )
    assert three["one"].contrast.p == pytest.approx(min(1.0, 3 * alone.contrast.p))
    assert three["two"].verdict(0.05) is Verdict.UNMEASURED
