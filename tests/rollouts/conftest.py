"""A finished run that a test may change."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest


@pytest.fixture
def root(undisturbed, tmp_path) -> Path:
    """A copy of the finished run with its record; its base models are not there."""
    for name in ("runs", "provenance"):
        shutil.copytree(undisturbed.parents[2] / name, tmp_path / name)
    return tmp_path
