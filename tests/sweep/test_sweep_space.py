"""From drawn numbers to configuration keys and back: the band is a band everywhere, and baselines are found again."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sweep_cases import BAND, BASE, LAMBDA, declared

from rlanything.config import AdaptationConfig
from rlanything.core.errors import ConfigError
from rlanything.sweep.declare import extremes, space
from rlanything.sweep.declare.starts import starts

shares = st.floats(0.0, 1.0, allow_nan=False)


@given(shares, shares, shares, shares, shares, shares)
def test_the_lower_threshold_stays_below_the_upper_everywhere(a, b, c, d, at, across):
    """For every band that fits between 0 and 1, and every point that a sampler may draw from it."""
    widths = sorted((0.001 + 0.998 * c, 0.001 + 0.998 * d))
    room = widths[1] / 2
    centres = sorted((room + a * (1 - 2 * room), room + b * (1 - 2 * room)))
    sweep = declared(space={"band": {**BAND, "centre": centres, "width": widths}})
    drawn = {
        "band.centre": centres[0] + at * (centres[1] - centres[0]),
        "band.width": widths[0] + across * (widths[1] - widths[0]),
    }
    sets = space.values(sweep, drawn)
    low, high = sets["adaptation.alpha_low"], sets["adaptation.alpha_high"]
    assert low < high
    checked = AdaptationConfig(alpha_low=low, alpha_high=high)
    assert (checked.alpha_low, checked.alpha_high) == (low, high)


@given(st.floats(0.25, 4.0), st.floats(0.4, 0.6), st.floats(0.2, 0.8))
def test_a_point_is_found_again_from_what_it_sets(lam, centre, width):
    sweep = declared()
    sets = space.values(sweep, {"signals.lambda": lam, "band.centre": centre, "band.width": width})
    found = space.params(sweep, sets)
    if found is not None:  # rounding may move a point over the border
        assert space.values(sweep, found) == pytest.approx(sets, abs=2e-4)


def test_params_can_be_read():
    sets = space.values(declared(), {"signals.lambda": 0.123456789, "band.centre": 0.5, "band.width": 1 / 3})
    assert sets == {
        "signals.lambda": 0.1235, "adaptation.alpha_low": 0.3333, "adaptation.alpha_high": 0.6667
    }  # fmt: skip


def test_the_paper_and_the_default_come_first():
    first, second = starts(declared(), BASE)
    assert (first.label, second.label) == ("paper", "default")
    assert first.sets == {
        "signals.lambda": 1.0, "adaptation.alpha_low": 0.2, "adaptation.alpha_high": 0.8
    }  # fmt: skip
    assert second.sets["signals.lambda"] == 0.5
    assert first.point == {"signals.lambda": 1.0, "band.centre": 0.5, "band.width": 0.6}


def test_a_baseline_outside_of_the_space_is_run_all_the_same():
    """The space has no lambda, and not the paper's band: the paper's point sets both, and has no place in the space."""
    sweep = declared(space={"judge.m": [3, 5], "band": {**BAND, "width": [0.2, 0.4]}})
    paper, default = starts(sweep, BASE)
    assert paper.sets == {
        "judge.m": 3, "adaptation.alpha_low": 0.2, "adaptation.alpha_high": 0.8, "signals.lambda": 1.0
    }  # fmt: skip
    assert paper.point is None
    assert default.point is None


def test_a_grid_is_every_point_once_with_the_baselines_first():
    sweep = declared(
        sampler="grid",
        space={"signals.lambda": [0.25, 0.5, 1.0], "judge.m": {"low": 1, "high": 5, "step": 2}},
    )
    found = starts(sweep, BASE)
    points = [(s.sets["signals.lambda"], s.sets["judge.m"]) for s in found]
    assert points[:2] == [(1.0, 3), (0.5, 3)]
    assert len(points) == len(set(points)) == 9


def test_a_grid_by_mistake_is_refused():
    sweep = declared(sampler="grid", space={"rollout.tasks": {"low": 1, "high": 1000}})
    with pytest.raises(ConfigError, match="the space has 1000 points"):
        space.grid(sweep)


def test_whole_numbers_stay_whole():
    sweep = declared(space={"judge.m": {"low": 1, "high": 5}, "signals.lambda": {"low": 1, "high": 2.5}})
    found = space.distributions(sweep)
    assert type(found["judge.m"]).__name__ == "IntDistribution"
    assert type(found["signals.lambda"]).__name__ == "FloatDistribution"


def test_words_and_switches_are_choices():
    sweep = declared(space={"adaptation.acceptance": ["strict", "paired"], "signals.lambda": LAMBDA})
    (first, _) = starts(sweep, BASE)
    assert first.point == {"adaptation.acceptance": "strict", "signals.lambda": 1.0}


def test_the_corners_of_a_space_are_every_end_with_every_other():
    found = list(extremes.corners(declared(space={"signals.lambda": LAMBDA, "judge.m": [1, 2, 4]})))
    assert {(c["signals.lambda"], c["judge.m"]) for c in found} == {
        (e, m) for e in (0.25, 4.0) for m in (1, 2, 4)
    }
    assert len(found) == 6
    wide = declared(space={f"key.{i}": {"low": 0, "high": 1} for i in range(12)})
    some = [tuple(c.values()) for c in extremes.corners(wide)]
    assert len(set(some)) == len(some) == extremes.CORNERS
