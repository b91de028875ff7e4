"""Means, intervals, pairing and Holm's correction; and how often the interval holds the truth."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from benchmarks.interval_coverage import World, coverage, measure
from rlanything.report.results.statistics import (
    COUNTS,
    SHARES,
    Contrast,
    Estimate,
    Panel,
    contrast,
    corrected,
    estimate,
    holm,
    p_value,
    paired,
    seed_means,
    spread,
    standard_error,
)

SHAPES = st.tuples(st.integers(1, 2), st.integers(1, 4), st.integers(2, 8))


def panel(hits, totals=None, seeds=None, tasks=None) -> Panel:
    """A panel from nested lists (channels, seeds, tasks); totals default to 1."""
    hits = np.asarray(hits, dtype=float)
    totals = np.ones_like(hits) if totals is None else np.asarray(totals, dtype=float)
    seeds = tuple(range(hits.shape[1])) if seeds is None else tuple(seeds)
    tasks = tuple(f"t{i}" for i in range(hits.shape[2])) if tasks is None else tuple(tasks)
    return Panel(seeds, tasks, hits, totals)


@st.composite
def pairs(draw) -> tuple[Panel, Panel]:
    shape = draw(SHAPES)
    totals = draw(arrays(np.int64, shape, elements=st.integers(1, 5)))
    hits = [draw(arrays(np.int64, shape, elements=st.integers(0, 5))) for _ in range(2)]
    return panel(np.minimum(hits[0], totals), totals), panel(np.minimum(hits[1], totals), totals)


@given(pairs())
@settings(max_examples=60, deadline=None)
def test_interval_holds_its_mean_and_stays_a_share(two):
    found = estimate(two[0])
    assert 0.0 <= found.mean <= 1.0
    if found.low is not None:  # something varies, or all is 0
        assert 0.0 <= found.low <= found.mean <= found.high <= 1.0


@given(pairs())
@settings(max_examples=60, deadline=None)
def test_difference_is_antisymmetric_and_matches_the_means(two):
    forth, back = (contrast(a, b) for a, b in (two, two[::-1]))
    means = [estimate(p).mean for p in two]
    assert forth.difference.mean == pytest.approx(means[0] - means[1], abs=1e-9)
    assert (forth.difference.low is None) == (back.difference.low is None)
    assert (forth.p is None) == (back.p is None)
    if forth.difference.low is not None:
        assert forth.difference.low == pytest.approx(-back.difference.high, abs=1e-6)
        assert forth.difference.high == pytest.approx(-back.difference.low, abs=1e-6)
        assert forth.p == pytest.approx(back.p)


@given(pairs())
@settings(max_examples=30, deadline=None)
def test_an_arm_does_not_differ_from_itself(two):
    found = contrast(two[0], two[0])
    assert (found.difference.mean, found.difference.low, found.difference.high) == (0.0, 0.0, 0.0)
    assert found.p == 1.0


def test_pairing_removes_what_arms_share():
    rng = np.random.default_rng(0)
    hard = np.tile((rng.random(40) < 0.5).astype(float), (3, 1))[None]
    base, arm = panel(hard), panel(np.clip(hard + (np.arange(40) % 10 == 0), 0, 1))
    alone = estimate(arm)
    together = contrast(arm, base).difference
    assert together.high - together.low < 0.6 * (alone.high - alone.low)


def test_one_seed_gives_the_interval_of_the_tasks():
    rng = np.random.default_rng(0)
    outcomes = (rng.random((1, 1, 100)) < 0.5).astype(float)
    found = estimate(panel(outcomes))
    assert found.high - found.low == pytest.approx(2 * 1.984 * outcomes.std(ddof=1) / 10, rel=1e-3)


def test_the_variance_is_that_of_the_crossed_model():
    """Simulated means: seeds, tasks and the rest add their variances, each divided by how often it was drawn."""
    rng = np.random.default_rng(0)
    seeds, tasks = 5, 8
    drawn = [
        0.5 * rng.normal(size=(seeds, 1)) + rng.normal(size=(1, tasks)) + 2 * rng.normal(size=(seeds, tasks))
        for _ in range(4000)
    ]
    truth = 0.25 / seeds + 1 / tasks + 4 / (seeds * tasks)
    assert np.var([cells.mean() for cells in drawn]) == pytest.approx(truth, rel=0.07)
    # A little above, because a mean square below the rest is raised to it.
    assert truth < np.mean([spread(cells).variance for cells in drawn]) < 1.3 * truth


def test_mean_squares_by_hand():
    found = spread(np.array([[1.0, 2.0], [3.0, 8.0]]))
    # grand mean 3.5; rows 1.5 and 5.5, columns 2 and 5: mean squares 16, 9 and (with residuals of 1) 4
    assert found.variance == pytest.approx((16 + 9 - 4) / 4)
    assert found.freedom == pytest.approx(21**2 / (16**2 + 9**2 + 4**2))


def test_seeds_that_agree_by_chance_do_not_make_it_narrow():
    """Three seeds with equal means but different tasks solved: the luck of the tasks is still there."""
    agree = panel(np.array([[np.roll([1, 0, 0, 1, 1, 0], i) for i in range(3)]]))
    split = panel(np.array([[[1, 1, 0, 1, 1, 0], [1, 0, 0, 0, 1, 0], [1, 0, 0, 1, 1, 0]]]))
    narrow, wide = estimate(agree), estimate(split)
    assert narrow.mean == wide.mean == 0.5
    assert narrow.high - narrow.low > 0.5


def test_a_count_of_one_seed_has_no_interval_and_of_three_has_students():
    one = Panel((0,), ("run",), np.array([[[90.0]]]), np.ones((1, 1, 1)), (0.0, float("inf")))
    assert estimate(one).low is None
    assert contrast(one, one).p is None
    counts = np.array([[[90.0], [100.0], [110.0]]])
    three = Panel((0, 1, 2), ("run",), counts, np.ones_like(counts), (0.0, float("inf")))
    found = estimate(three)
    assert found.mean == 100.0
    assert found.high - 100.0 == pytest.approx(4.303 * 10 / np.sqrt(3), rel=1e-3)


def test_balanced_accuracy_of_a_constant_answer_is_one_half():
    hits = [[[90, 90]], [[0, 0]]]
    totals = [[[90, 90]], [[10, 10]]]
    assert estimate(panel(hits, totals)).mean == 0.5


def test_a_channel_that_most_tasks_lack_does_not_break_the_interval():
    hits = [[[3, 4, 5, 2]], [[1, 0, 0, 0]]]
    totals = [[[5, 5, 5, 5]], [[2, 0, 0, 0]]]
    found = estimate(panel(hits, totals))
    assert found.mean == pytest.approx((14 / 20 + 1 / 2) / 2)
    assert np.isfinite([found.low, found.high]).all()


def test_only_shared_seeds_and_cells_are_compared():
    arm = panel([[[1, 1, 0], [1, 1, 1]]], [[[1, 1, 1], [1, 0, 1]]], seeds=(0, 1))
    base = panel([[[0, 1, 0], [0, 0, 0]]], seeds=(0, 2), tasks=("t0", "t1", "x"))
    left, right = paired(arm, base)
    assert (left.seeds, left.tasks) == ((0,), ("t0", "t1"))
    assert contrast(arm, base).difference.mean == 0.5
    assert right.totals.tolist() == left.totals.tolist()
    assert contrast(arm, panel([[[1]]], seeds=(9,))) is None


def test_tasks_in_which_nothing_was_measured_do_not_make_it_narrow():
    rng = np.random.default_rng(0)
    hits = rng.integers(0, 4, size=(2, 3, 8)).astype(float)
    empty = [np.concatenate([a, np.zeros((2, 3, 24))], axis=2) for a in (hits, np.full_like(hits, 3))]
    whole, padded = panel(hits, np.full_like(hits, 3)), panel(*empty)
    base = panel(np.ones_like(hits), np.full_like(hits, 3))
    assert estimate(padded) == estimate(whole)
    assert standard_error(padded) == standard_error(whole)
    assert contrast(padded, base) == contrast(whole, base)
    late = np.where(np.arange(32) < 8, padded.totals, 0.0)
    late[:, 0, 20:] = 3  # of a seed that is left out, as its second channel is empty
    late[1, 0] = 0
    assert estimate(panel(padded.hits, late)) == estimate(panel(hits[:, 1:], np.full((2, 2, 8), 3)))


def test_nothing_measured_is_none():
    assert estimate(panel([[[0, 0]]], [[[0, 0]]])) is None


def test_p_and_interval_agree():
    """p is .05 where the interval ends at 0."""
    rng = np.random.default_rng(1)
    base = rng.random((1, 3, 30)) < 0.5
    for gain in np.linspace(0, 0.6, 30):
        arm = base | (rng.random(base.shape) < gain)
        found = contrast(panel(arm.astype(float)), panel(base.astype(float)))
        assert found.clear == (found.difference.low > 0)


@pytest.mark.parametrize("shape", [(1, 3, 4), (1, 3, 1), (1, 1, 4)])
def test_what_never_varies_is_no_proof(shape):
    ones, zeros = panel(np.ones(shape)), panel(np.zeros(shape))
    found = contrast(ones, zeros)
    assert found == Contrast(Estimate(1.0, None, None), None)
    assert not found.clear
    assert contrast(ones, ones) == Contrast(Estimate(0.0, 0.0, 0.0), 1.0)
    assert estimate(ones) == Estimate(1.0, None, None)
    assert estimate(zeros) == Estimate(0.0, None, None)
    assert estimate(replace(zeros, limits=(0.0, float("inf")))).low == (0.0 if zeros.hits.size > 1 else None)


def test_rounding_is_no_spread():
    cells = np.array([[0.1 + 0.2, 0.3], [0.3, 0.1 + 0.2]])
    assert np.ptp(cells) > 0
    assert spread(cells).variance == 0.0
    assert p_value(cells) is None


def test_contrasts_are_corrected_together():
    found = corrected(
        {n: Contrast(Estimate(0.1, 0.0, 0.2), p) for n, p in (("a", 0.03), ("b", None), ("c", 0.04))}
    )
    assert {name: c.p for name, c in found.items()} == {"a": 0.06, "b": None, "c": 0.06}
    assert not found["a"].clear


def test_holm_by_hand():
    assert holm({"a": 0.01, "b": 0.04, "c": 0.03}) == pytest.approx({"a": 0.03, "b": 0.06, "c": 0.06})
    assert holm({}) == {}


@given(st.dictionaries(st.text(max_size=3), st.floats(0, 1), max_size=6))
def test_holm_only_raises_and_keeps_order(p):
    adjusted = holm(p)
    assert list(adjusted) == list(p)
    assert all(p[k] <= adjusted[k] <= 1.0 for k in p)
    assert all(adjusted[a] <= adjusted[b] for a in p for b in p if p[a] < p[b])


@pytest.mark.parametrize("gain", [None, 0.5])
@pytest.mark.parametrize("spread", [0.0, 0.5])
def test_interval_covers_the_truth_about_as_often_as_it_says(spread, gain):
    found = measure(World(3, 40, 2, spread, 1.5, 0.3, gain), simulations=150, resamples=100)
    assert 0.89 <= found.coverage["crossed"] <= 1.0


def test_the_plain_bootstrap_would_not_when_seeds_differ():
    found = measure(World(3, 40, 10, 1.0, 0.3), simulations=150, resamples=100)
    assert found.coverage["crossed"] > 0.88
    assert found.coverage["bootstrap"] < 0.85


def test_seeds_that_agree_lower_the_coverage_of_students_t_alone():
    found = measure(World(3, 60, 2, 0.0, 0.0, 0.0, 0.5), simulations=200, resamples=100)
    assert found.agreeing["crossed"] > 0.95
    assert found.agreeing["student"] < 0.93


def test_coverage_prints_a_line_per_world(capsys):
    found = coverage([World(1, 20, 2, 0.0, 1.0)], simulations=20, resamples=100)
    assert len(found) == 1
    assert len(capsys.readouterr().out.splitlines()) == 3


def test_values_of_a_seed_are_pooled_and_a_seed_without_any_is_left_out():
    found = seed_means({3: [1.0, 4.0], 5: [], 7: [0]}, COUNTS)
    assert (found.seeds, found.hits.tolist(), found.limits) == ((3, 7), [[[2.5], [0.0]]], COUNTS)
    assert estimate(found).low == 0.0
    assert estimate(seed_means({0: [1.0], 1: [0.5]}, SHARES)).high == 1.0


def test_where_no_seed_has_a_value_nothing_is_estimated():
    assert seed_means({0: [], 1: []}, SHARES) is None
    assert estimate(None) is None
