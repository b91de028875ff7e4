"""Killed at any call that changes the disk, and again while it recovers, a run ends with the same bytes."""

from __future__ import annotations

import random
import shutil
from functools import partial
from pathlib import Path
from tempfile import mkdtemp

import pytest
import small_run
from crashpoints import killed_at


@pytest.fixture
def root(tmp_path):
    """A folder in memory where there is one: thousands of syncs take a while on a disk, and prove nothing more here."""
    memory = Path("/dev/shm")
    folder = Path(mkdtemp(dir=memory)) if memory.is_dir() else tmp_path
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


def test_a_run_that_is_killed_at_any_change_of_the_disk_ends_with_the_same_bytes(root):
    points, seen = 0, set()
    while killed_at(points, partial(small_run.run, small_run.prepare(root / "run"))):
        left = small_run.tree(root / "run")
        small_run.check(root / "run")
        if left not in seen:  # what is left decides how a restart ends
            small_run.run(root / "run")
            small_run.finished(root / "run")
            seen.add(left)
        shutil.rmtree(root / "run")
        points += 1
    small_run.finished(root / "run")
    assert points > len(seen) > 100


@pytest.mark.parametrize("seed", range(5))
def test_a_run_that_is_killed_at_every_start_ends_with_the_same_bytes(root, seed):
    small_run.prepare(root)
    rng, kills = random.Random(seed), 0
    while killed_at(rng.randrange(200), partial(small_run.run, root)):
        small_run.check(root)
        kills += 1
    small_run.finished(root)
    assert kills >= 2
