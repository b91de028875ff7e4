"""Killed at any call that changes the disk, and again while it recovers, a run ends with the same bytes."""

from __future__ import annotations

import random
import shutil
from functools import partial

import pytest
import small_run
from crashpoints import killed_at


@pytest.mark.long
@pytest.mark.parametrize("every", [7, pytest.param(1, marks=pytest.mark.slow)])
def test_a_run_that_is_killed_at_any_change_of_the_disk_ends_with_the_same_bytes(memory, every):
    """Real processes and real kills; the fast test takes every seventh change."""
    points, seen = 0, set()
    while killed_at(points, partial(small_run.run, small_run.prepare(memory / "run"))):
        left = small_run.tree(memory / "run")
        small_run.check(memory / "run")
        if left not in seen:  # what is left decides how a restart ends
            small_run.run(memory / "run")
            small_run.finished(memory / "run")
            seen.add(left)
        shutil.rmtree(memory / "run")
        points += every
    small_run.finished(memory / "run")
    assert points > 200
    assert len(seen) > 100 / every


@pytest.mark.long
@pytest.mark.parametrize("seed", [0, 3, 4, *(pytest.param(n, marks=pytest.mark.slow) for n in (1, 2))])
def test_a_run_that_is_killed_at_every_start_ends_with_the_same_bytes(memory, seed):
    small_run.prepare(memory)
    rng, kills = random.Random(seed), 0
    while killed_at(rng.randrange(200), partial(small_run.run, memory)):
        small_run.check(memory)
        kills += 1
    small_run.finished(memory)
    assert kills >= 2
