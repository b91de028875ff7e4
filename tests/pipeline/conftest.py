"""The copy of the project that the tests change."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from pipeline_cases import CODE, ROOT, Project, pipeline, with_stand_ins


@pytest.fixture(scope="session")
def finished(tmp_path_factory) -> Path:
    """The copy after its first `dvc repro`."""
    root = tmp_path_factory.mktemp("pipeline") / "project"
    root.mkdir()
    for folder in CODE:
        shutil.copytree(ROOT / folder, root / folder, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("params.yaml", ".dvcignore"):
        shutil.copyfile(ROOT / name, root / name)
    (root / "dvc.yaml").write_text(yaml.safe_dump(with_stand_ins(pipeline()), sort_keys=False))
    shutil.copyfile(ROOT / "tests" / "pipeline" / "stand_in.py", root / "stand_in.py")
    shutil.copytree(ROOT / ".dvc", root / ".dvc", ignore=shutil.ignore_patterns("cache", "tmp", "*.local"))
    (root / ".dvc" / "config.local").write_text("[core]\n    no_scm = true\n")
    Project(root).repro(same="bootstrap tasks")
    return root


@pytest.fixture
def project(finished, tmp_path) -> Project:
    """A copy of one's own, everything up to date."""
    shutil.copytree(finished, tmp_path / "project", symlinks=True)
    return Project(tmp_path / "project")


@pytest.fixture(scope="session")
def asked_root(finished, tmp_path_factory) -> Path:
    """A copy of which DVC is only asked what would run."""
    return shutil.copytree(finished, tmp_path_factory.mktemp("asked") / "project", symlinks=True)


@pytest.fixture
def asked(asked_root) -> Iterator[Project]:
    """That copy, everything up to date. It must not be run: what a test changes in it is undone."""
    project = Project(asked_root)
    yield project
    project.undo()
