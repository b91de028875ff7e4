"""LiveBench's files, made for each test."""

from __future__ import annotations

from pathlib import Path

import pytest
from livebench_files import made_files


@pytest.fixture
def files(tmp_path: Path) -> dict[str, Path]:
    """See `made_files`."""
    return made_files(tmp_path)
