"""Finished trials whose truth is known, for the tests of what is said of them and of what is published."""

from __future__ import annotations

import pytest
from sweep_cases import declared, make, play


@pytest.fixture(scope="module")
def board(tmp_path_factory):
    """Twelve finished trials whose truth is known: lambda matters, the thresholds do not."""
    made = make(declared(objectives=["in_domain", "cost"], startup=12), tmp_path_factory.mktemp("sweep"))
    play(made)
    return made
