"""A family with its sandbox, some of its tasks, and sources that every user can read, made once."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from public_folder import readable_by_all

from envs.coding.family import CodingFamily
from envs.coding.sandbox import SandboxError
from rlanything.core.types import Task

ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="session")
def family() -> Iterator[CodingFamily]:
    made = CodingFamily()
    try:
        made.sandbox()
    except SandboxError as error:
        pytest.skip(f"no sandbox here: {error}")
    yield made
    made.close()


@pytest.fixture(scope="session")
def tasks() -> list[Task]:
    """Problems of every split; making them needs no sandbox."""
    made = CodingFamily()
    return [t for s in ("train", "in_domain", "out_of_domain", "reward_panel") for t in made.make(s, 20, 3)]


@pytest.fixture(scope="session")
def public_sources() -> Iterator[Path]:
    """The sources where every user can read them: the repository, or a copy where it lies in a private folder."""
    if readable_by_all(ROOT) and readable_by_all(ROOT / "envs" / "__init__.py"):
        yield ROOT
        return
    folder = Path(tempfile.mkdtemp(prefix="sources-"))
    folder.chmod(0o755)
    try:
        if not readable_by_all(folder):
            pytest.skip(f"{folder}: other users cannot read it; set TMPDIR to a folder that they can")
        for name in ("envs", "rlanything", "tests/envs/coding"):
            shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
        for path in folder.rglob("*"):
            path.chmod(0o755 if path.is_dir() else 0o644)
        yield folder
    finally:
        shutil.rmtree(folder)
