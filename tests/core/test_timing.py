"""Phases add up, nest, and belong to the timer that runs; without one nothing is measured."""

from __future__ import annotations

import time
from itertools import count as ticks

import pytest

from rlanything.core.timing import Spent, Timer, count, phase


def timer() -> Timer:
    """A timer whose clocks advance with every look: 1 s on the clock, half a second of CPU."""
    wall, cpu = ticks(), ticks()
    return Timer(lambda: float(next(wall)), lambda: next(cpu) / 2)


def test_a_phase_adds_up_and_an_inner_one_is_part_of_the_outer_one():
    watch = timer()
    with watch.running():
        for _ in range(2):
            with phase("rollout"), phase("generate"):
                pass
    lap = watch.lap()
    assert lap.phases == {"rollout/generate": Spent(2.0, 1.0), "rollout": Spent(6.0, 3.0)}
    assert lap.total == Spent(9.0, 4.5)


def test_a_lap_starts_the_next_one_empty():
    watch = timer()
    with watch.running():
        count("tokens", 3)
        count("tokens", 4)
    assert watch.lap().counts == {"tokens": 7}
    assert watch.lap().counts == {}
    with pytest.raises(ValueError, match="not inside judge"), watch.phase("judge"):
        watch.lap()


def test_a_block_that_raises_counts_and_is_over():
    watch = timer()
    with watch.running(), pytest.raises(KeyError), phase("learn"):
        raise KeyError
    assert list(watch.lap().phases) == ["learn"]


def test_without_a_running_timer_nothing_is_measured():
    watch = timer()
    with phase("learn"):
        count("tokens", 1)
    lap = watch.lap()
    assert (lap.phases, lap.counts) == ({}, {})


def test_a_decorated_function_is_a_phase():
    @phase("panels")
    def measure() -> int:
        return 3

    watch = timer()
    with watch.running():
        assert measure() + measure() == 6
    assert watch.lap().phases["panels"] == Spent(2.0, 1.0)


def test_real_clocks_see_sleep_on_the_clock_and_work_on_the_cpu():
    watch = Timer()
    with watch.phase("wait"):
        time.sleep(0.05)
    with watch.phase("work"):
        sum(range(2_000_000))
    phases = watch.lap().phases
    assert phases["wait"].wall >= 0.05 > phases["wait"].cpu
    assert phases["work"].cpu > 0
