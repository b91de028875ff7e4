"""A project to rehearse in."""

from __future__ import annotations

import pytest
from stage_cases import ROOT


@pytest.fixture
def project(tmp_path):
    (tmp_path / "experiments").symlink_to(ROOT / "experiments")
    return tmp_path
