"""The acceptance rule: who is asked for another task, and which one is taken."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlanything.config import AdaptationConfig
from rlanything.core.adaptation import AcceptanceRule, accepts, direction
from rlanything.core.types import Direction

HARDER, EASIER = Direction.HARDER, Direction.EASIER
PAPER = AcceptanceRule()
INCLUSIVE = AcceptanceRule(acceptance="inclusive")
RULES = ["strict", "inclusive", "paired"]
SHARE = st.integers(0, 16).map(lambda k: k / 16)
BANDS = st.tuples(SHARE, SHARE, st.sampled_from(RULES)).filter(lambda band: band[0] < band[1])
WAY = st.sampled_from(list(Direction))


@pytest.mark.parametrize(
    ("accuracy", "expected"),
    [(0.0, EASIER), (0.19, EASIER), (0.2, None), (0.5, None), (0.8, None), (0.81, HARDER), (1.0, HARDER)],
)
def test_the_direction_is_asked_for_strictly_outside_the_band(accuracy, expected):
    assert direction(accuracy, PAPER) is expected


@pytest.mark.parametrize(
    ("way", "before", "after", "strict", "inclusive"),
    [
        (HARDER, 1.0, 0.5, True, True),
        (HARDER, 1.0, 0.2, False, True),
        (HARDER, 1.0, 0.1, False, False),
        (HARDER, 0.9, 0.9, False, False),
        (HARDER, 0.9, 1.0, False, False),
        (EASIER, 0.0, 0.5, True, True),
        (EASIER, 0.0, 0.8, False, True),
        (EASIER, 0.0, 0.9, False, False),
        (EASIER, 0.1, 0.1, False, False),
        (EASIER, 0.0, 0.0, False, False),
    ],
)
def test_the_acceptance_band(way, before, after, strict, inclusive):
    assert accepts(way, before, after, PAPER) is strict
    assert accepts(way, before, after, AcceptanceRule(acceptance="paired")) is strict
    assert accepts(way, before, after, INCLUSIVE) is inclusive


@given(WAY, SHARE, SHARE, BANDS)
def test_what_is_accepted_is_solvable_and_went_the_way_that_was_asked(way, before, after, band):
    rule = AcceptanceRule(*band)
    if not accepts(way, before, after, rule):
        return
    assert after > 0
    assert (after < before) == (way is HARDER)
    assert rule.alpha_low <= after if way is HARDER else after <= rule.alpha_high


@given(WAY, SHARE, SHARE)
def test_the_inclusive_bounds_accept_all_that_the_strict_ones_do(way, before, after):
    assert accepts(way, before, after, INCLUSIVE) >= accepts(way, before, after, PAPER)


@given(WAY, SHARE, SHARE, BANDS)
def test_the_bounds_differ_only_on_the_edges_of_the_band(way, before, after, band):
    low, high, _ = band
    strict, inclusive = (AcceptanceRule(low, high, name) for name in ("strict", "inclusive"))
    if accepts(way, before, after, strict) != accepts(way, before, after, inclusive):
        assert after == (low if way is HARDER else high)


@given(SHARE, BANDS)
def test_a_task_is_asked_to_change_exactly_when_it_is_outside_the_band(accuracy, band):
    rule = AcceptanceRule(*band)
    assert (direction(accuracy, rule) is None) == (rule.alpha_low <= accuracy <= rule.alpha_high)


@given(SHARE, SHARE, BANDS)
def test_no_task_is_taken_in_both_directions(before, after, band):
    rule = AcceptanceRule(*band)
    assert not (accepts(HARDER, before, after, rule) and accepts(EASIER, before, after, rule))


@pytest.mark.parametrize("acceptance", RULES)
def test_a_rewrite_that_nobody_solved_is_refused_even_without_a_lower_bound(acceptance):
    rule = AdaptationConfig(alpha_low=0.0, acceptance=acceptance).rule
    assert rule == AcceptanceRule(0.0, 0.8, acceptance)
    assert not accepts(HARDER, 1.0, 0.0, rule)
    assert accepts(HARDER, 1.0, 0.125, rule)
