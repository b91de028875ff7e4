"""Finished trials whose truth is known, for the tests of what is said of them and of what is published."""

from __future__ import annotations

import pytest
from sweep_cases import declared, make, play

from rlanything.sweep.results.publish import publish, stamp


@pytest.fixture(scope="session")
def board(made_once):
    """Twelve finished trials whose truth is known: lambda matters, the thresholds do not. Not to be changed."""
    sweep = declared(objectives=["in_domain", "cost"], startup=12)
    return make(sweep, made_once("sweep", lambda folder: play(make(sweep, folder))))


@pytest.fixture(scope="session")
def published(board, made_once):
    """The folder that the sweep of `board` published, where an earlier run had published; not to be changed."""

    def publish_all(root):
        file = root / "case.yaml"
        file.write_text("space: {}\n")
        (root / "sweeps" / "case").mkdir(parents=True)
        (root / "sweeps" / "case" / "stale.txt").write_text("of an earlier run")
        publish(board, file, root, stamp(root, "case"))

    return made_once("published", publish_all) / "sweeps" / "case"
