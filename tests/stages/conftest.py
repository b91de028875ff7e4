"""One project with tasks and barely trained models for all tests that run the real loop."""

from __future__ import annotations

from pathlib import Path

import pytest
from stage_cases import ROOT, small

from rlanything.stages import bootstrap, tasks


@pytest.fixture(scope="session")
def tiny_project(tmp_path_factory) -> Path:
    """A folder with experiments/, data/ and models/; not to be changed."""
    root = tmp_path_factory.mktemp("project")
    (root / "experiments").symlink_to(ROOT / "experiments")
    tasks.run(small(), root)
    bootstrap.run(small(), root)
    return root
