"""The whole pipeline, run again from nothing, leaves a git repository as it was committed."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from pipeline_cases import CODE, ROOT, dvc
from stage_cases import small

from rlanything.config import parse
from rlanything.planning import dvcfile

pytestmark = [pytest.mark.slow, pytest.mark.integration]


def git(root: Path, *words: str) -> str:
    identity = ("-c", "user.name=a", "-c", "user.email=a@b")
    command = ["git", *identity, "-C", str(root), *words]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


@pytest.fixture
def project(tmp_path) -> Path:
    """A small project in a git repository of its own, nothing made yet."""
    for folder in (*CODE, ".dvc"):
        ignored = shutil.ignore_patterns("__pycache__", "cache", "tmp", "*.local")
        shutil.copytree(ROOT / folder, tmp_path / folder, ignore=ignored)
    for name in (".dvcignore", ".gitignore"):
        shutil.copyfile(ROOT / name, tmp_path / name)
    params = small("train.seeds=1", "train.iterations=1").model_dump(mode="json", by_alias=True)
    (tmp_path / "params.yaml").write_text(yaml.safe_dump(params, sort_keys=False))
    (tmp_path / "dvc.yaml").write_text(dvcfile.text(parse(params)))
    git(tmp_path, "init", "--quiet")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "--quiet", "-m", "code")
    return tmp_path


def test_running_it_again_changes_no_tracked_file(project):
    dvc(project, "repro", "--quiet", "--no-run-cache")
    git(project, "add", ".")
    git(project, "commit", "--quiet", "-m", "results")
    kept = git(project, "ls-files").splitlines()
    assert {"dvc.lock", "report/report.md", "provenance/full.json"} <= set(kept)
    assert "provenance/starts/full.json" not in kept
    dvc(project, "repro", "--quiet", "--force", "--no-run-cache")
    assert git(project, "status", "--porcelain") == ""
    page = [sys.executable, "-m", "rlanything", "provenance", "full", "--exit-code"]
    settings = {name: value for name, value in os.environ.items() if name != "OMP_NUM_THREADS"}
    shown = subprocess.run(page, cwd=project, env={**settings, "PYTHONPATH": str(project)}, check=False)
    assert shown.returncode == 0
