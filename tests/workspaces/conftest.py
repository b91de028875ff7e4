"""A project for each test."""

from __future__ import annotations

from pathlib import Path

import pytest
from stage_cases import ROOT
from workspace_cases import TINY

from rlanything.planning import compose


@pytest.fixture
def project(tmp_path) -> Path:
    """A project with its sources and a configuration, and nothing made yet."""
    for name in ("experiments", "envs", "rlanything", "dvc.yaml"):
        (tmp_path / name).symlink_to(ROOT / name)
    compose.write(tmp_path / "params.yaml", TINY, tmp_path)
    return tmp_path
