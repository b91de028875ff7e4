"""Means, intervals, pairing and Holm's correction; and how often the interval holds the truth."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from benchmarks.interval_coverage import World, coverage, measure
from rlanything.report.results.statistics import Panel, contrast, draws, estimate, holm, p_value, paired

RESAMPLES = 200
NAME = "in_domain"
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
    found = estimate(two[0], 1, NAME, RESAMPLES)
    assert 0.0 <= found.low <= found.mean <= found.high <= 1.0


@given(pairs())
@settings(max_examples=60, deadline=None)
def test_difference_is_antisymmetric_and_matches_the_means(two):
    forth, back = (contrast(a, b, 1, NAME, RESAMPLES) for a, b in (two, two[::-1]))
    means = [estimate(p, 1, NAME, RESAMPLES).mean for p in two]
    assert forth.difference.mean == pytest.approx(means[0] - means[1], abs=1e-9)
    assert forth.difference.low == pytest.approx(-back.difference.high, abs=1e-6)
    assert forth.difference.high == pytest.approx(-back.difference.low, abs=1e-6)
    assert forth.p == pytest.approx(back.p)


@given(pairs())
@settings(max_examples=30, deadline=None)
def test_an_arm_does_not_differ_from_itself(two):
    found = contrast(two[0], two[0], 1, NAME, RESAMPLES)
    assert (found.difference.mean, found.difference.low, found.difference.high) == (0.0, 0.0, 0.0)
    assert found.p == 1.0


def test_pairing_removes_what_arms_share():
    rng = np.random.default_rng(0)
    hard = np.tile((rng.random(40) < 0.5).astype(float), (3, 1))[None]
    base, arm = panel(hard), panel(np.clip(hard + (np.arange(40) % 10 == 0), 0, 1))
    alone = estimate(arm, 1, NAME, 1000)
    together = contrast(arm, base, 1, NAME, 1000).difference
    assert together.high - together.low < 0.6 * (alone.high - alone.low)


def test_same_seed_same_numbers_and_another_seed_close_by():
    rng = np.random.default_rng(0)
    one = panel(rng.random((1, 3, 50)) < 0.5)
    assert estimate(one, 1, NAME, 1000) == estimate(one, 1, NAME, 1000)
    a, b = estimate(one, 1, NAME, 2000), estimate(one, 2, NAME, 2000)
    assert a.mean == b.mean
    assert a.low == pytest.approx(b.low, abs=0.02)


def test_draws_are_shared_by_name_and_size_and_tasks_do_not_depend_on_seeds():
    assert draws(1, NAME, 3, 10, 50) is draws(1, NAME, 3, 10, 50)
    assert (draws(1, NAME, 3, 10, 50).tasks == draws(1, NAME, 5, 10, 50).tasks).all()
    assert (draws(1, NAME, 3, 10, 50).tasks != draws(1, "other", 3, 10, 50).tasks).any()
    assert draws(1, NAME, 3, 10, 50).tasks.sum(axis=1) == pytest.approx(10)
    assert not draws(1, NAME, 1, 10, 50).student.any()


def test_one_seed_resamples_tasks_only():
    rng = np.random.default_rng(0)
    outcomes = (rng.random((1, 1, 100)) < 0.5).astype(float)
    found = estimate(panel(outcomes), 1, NAME, 4000)
    error = outcomes.std() / 10
    assert found.high - found.low == pytest.approx(2 * 1.96 * error, rel=0.1)


def test_a_count_of_one_seed_has_no_interval_and_of_three_has_students():
    one = Panel((0,), ("run",), np.array([[[90.0]]]), np.ones((1, 1, 1)), (0.0, float("inf")))
    assert estimate(one, 1, "accepted_tasks", RESAMPLES).low is None
    assert contrast(one, one, 1, "accepted_tasks", RESAMPLES).p is None
    counts = np.array([[[90.0], [100.0], [110.0]]])
    three = Panel((0, 1, 2), ("run",), counts, np.ones_like(counts), (0.0, float("inf")))
    found = estimate(three, 1, "accepted_tasks", 4000)
    assert found.mean == 100.0
    assert found.high - 100.0 == pytest.approx(4.303 * 10 / np.sqrt(3), rel=0.05)


def test_balanced_accuracy_of_a_constant_answer_is_one_half():
    hits = [[[90, 90]], [[0, 0]]]
    totals = [[[90, 90]], [[10, 10]]]
    assert estimate(panel(hits, totals), 1, "rm_process", RESAMPLES).mean == 0.5


def test_a_channel_that_a_resample_misses_does_not_break_the_interval():
    hits = [[[3, 4, 5, 2]], [[1, 0, 0, 0]]]
    totals = [[[5, 5, 5, 5]], [[2, 0, 0, 0]]]
    found = estimate(panel(hits, totals), 1, "rm_process", RESAMPLES)
    assert found.mean == pytest.approx((14 / 20 + 1 / 2) / 2)
    assert np.isfinite([found.low, found.high]).all()


def test_only_shared_seeds_and_cells_are_compared():
    arm = panel([[[1, 1, 0], [1, 1, 1]]], [[[1, 1, 1], [1, 0, 1]]], seeds=(0, 1))
    base = panel([[[0, 1, 0], [0, 0, 0]]], seeds=(0, 2), tasks=("t0", "t1", "x"))
    left, right = paired(arm, base)
    assert (left.seeds, left.tasks) == ((0,), ("t0", "t1"))
    assert contrast(arm, base, 1, NAME, RESAMPLES).difference.mean == 0.5
    assert right.totals.tolist() == left.totals.tolist()
    assert contrast(arm, panel([[[1]]], seeds=(9,)), 1, NAME, RESAMPLES) is None


def test_nothing_measured_is_none():
    assert estimate(panel([[[0, 0]]], [[[0, 0]]]), 1, NAME, RESAMPLES) is None


def test_p_value_counts_the_far_side():
    assert p_value(np.linspace(-1, 99, 1001)) == pytest.approx(2 * (11 + 1) / 1002)
    assert p_value(np.full(999, 3.0)) == pytest.approx(2 / 1000)
    assert p_value(np.zeros(10)) == 1.0


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
    found = measure(World(3, 40, 2, spread, 1.5, 0.3, gain), simulations=150, resamples=300)
    assert 0.89 <= found.coverage <= 1.0


def test_the_plain_bootstrap_would_not_when_seeds_differ():
    found = measure(World(3, 40, 10, 1.0, 0.3), simulations=150, resamples=300)
    assert found.coverage > 0.88
    assert found.plain < 0.85


def test_coverage_prints_a_line_per_world(capsys):
    found = coverage([World(1, 20, 2, 0.0, 1.0)], simulations=20, resamples=100)
    assert len(found) == 1
    assert len(capsys.readouterr().out.splitlines()) == 2
