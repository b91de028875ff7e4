"""Recorded results through a DVC remote: a clone of the repository gets with `dvc pull` what was recorded."""

import shutil
import subprocess
from pathlib import Path

import pytest
from pipeline_cases import ROOT, dvc

pytestmark = pytest.mark.integration

KEPT = ("data", "models", "runs", "evaluation")


def git(root: Path, *words: str) -> str:
    identity = ("-c", "user.name=a", "-c", "user.email=a@b")
    command = ["git", *identity, "-C", str(root), *words]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def contents(root: Path) -> dict[str, bytes]:
    """What DVC keeps there, by its path."""
    files = [path for name in KEPT for path in (root / name).rglob("*") if path.is_file()]
    return {path.relative_to(root).as_posix(): path.read_bytes() for path in files}


@pytest.mark.long
def test_a_clone_pulls_what_was_recorded_and_nothing_is_left_to_do(finished, tmp_path):
    recorded, clone = tmp_path / "recorded", tmp_path / "clone"
    shutil.copytree(finished, recorded, symlinks=True)
    (recorded / ".dvc" / "config.local").unlink()
    for name in ("ran.log", "stand_in.py"):
        (recorded / name).unlink()
    shutil.copyfile(ROOT / ".gitignore", recorded / ".gitignore")
    git(recorded, "init", "--quiet")
    dvc(recorded, "remote", "add", "--default", "storage", str(tmp_path / "storage"))
    git(recorded, "add", ".")
    git(recorded, "commit", "--quiet", "-m", "results")
    dvc(recorded, "push")
    git(recorded, "clone", "--quiet", str(recorded), str(clone))
    assert not any((clone / name).exists() for name in KEPT)
    dvc(clone, "pull")
    assert contents(clone) == contents(recorded)
    assert {path.split("/")[0] for path in contents(clone)} == set(KEPT)
    assert (clone / "report" / "headline.json").is_file()  # git has it
    assert git(clone, "status", "--porcelain") == ""
    dvc(clone, "repro", "--quiet")  # a stage that ran would fail: the stand-in is not there
    assert git(clone, "status", "--porcelain") == ""
