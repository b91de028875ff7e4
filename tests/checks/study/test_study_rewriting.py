"""Accepted tasks over time: nothing is lost between the parts, and what was not measured is left out."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlanything.checks.study.rewriting import PARTS, parts_of

COUNTS = st.lists(st.integers(0, 9), min_size=1, max_size=30)


def curve(values: list[float]) -> dict[int, float]:
    return {i: float(value) for i, value in enumerate(values)}


@given(st.lists(COUNTS, min_size=1, max_size=4).filter(lambda seeds: any(map(any, seeds))))
def test_every_iteration_is_in_one_part(seeds):
    longest = max(map(len, seeds))
    filled = [counts + [0] * (longest - len(counts)) for counts in seeds]
    parts = parts_of({"full": {seed: {"accepted": curve(counts)} for seed, counts in enumerate(filled)}})[
        "full"
    ]
    assert [i for part in parts for i in range(part.first, part.last + 1)] == list(range(longest))
    assert len(parts) == min(PARTS, longest)
    total = sum(part.accepted.mean for part in parts) * len(seeds)
    assert total == pytest.approx(sum(map(sum, seeds)))


def test_a_part_has_means_over_seeds_of_what_was_measured():
    runs = {
        0: {"accepted": curve([1, 2]), "accepted_accuracy": {1: 0.5}, "band_coverage": curve([0.25, 0.5])},
        1: {"accepted": curve([3, 0]), "accepted_accuracy": {}, "band_coverage": curve([0.75, 1.0])},
    }
    first, second = parts_of({"full": runs})["full"]
    assert (first.first, first.last, first.accepted.mean, first.accuracy) == (0, 0, 2.0, None)
    assert (first.band.mean, second.band.mean) == (0.5, 0.75)
    assert (second.accepted.mean, second.accuracy.mean, second.accuracy.low) == (1.0, 0.5, None)
    assert 0 <= first.accepted.low < 2 < first.accepted.high


def test_an_arm_that_accepts_nothing_has_no_parts():
    assert parts_of({"policy": {0: {"accepted": curve([0, 0])}}, "outcome": {0: {}}}) == {}
