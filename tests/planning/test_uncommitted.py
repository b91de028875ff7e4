"""What is said where params.yaml has other values than the last commit, as an interrupted experiment leaves it."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from rlanything.cli import main
from rlanything.planning.uncommitted import note

ROOT = Path(__file__).parents[2]


@pytest.fixture
def path(tmp_path) -> Path:
    """A params.yaml that is committed."""
    shutil.copytree(ROOT / "experiments", tmp_path / "experiments")
    found = tmp_path / "params.yaml"
    shutil.copyfile(ROOT / "params.yaml", found)
    for words in (("init",), ("add", "params.yaml"), ("commit", "-m", "first")):
        command = ["git", "-c", "user.name=a", "-c", "user.email=a@b", "-C", str(tmp_path), *words]
        subprocess.run(command, check=True, capture_output=True)
    return found


def test_what_is_committed_is_not_mentioned_and_neither_is_a_comment(path):
    assert note(path) == ""
    path.write_text("# another comment\n" + path.read_text())
    assert note(path) == ""


def test_values_of_an_experiment_are_named_with_the_way_back(path, capsys):
    path.write_text(path.read_text().replace("  lambda: 1.0", "  lambda: 0.75"))
    for words in (["config", "check"], ["config", "pipeline"], ["plan", "--device", "L4"]):
        assert main(["--root", str(path.parent), *words]) == 0
        said = capsys.readouterr().err
        assert "params.yaml is not that of the last commit (signals.lambda: 1.0 -> 0.75)" in said
        assert "the same command goes on, `rlanything config restore` takes them and the results back" in said


def test_a_stage_says_it_too_but_not_to_dvc(path, monkeypatch, capsys):
    path.write_text(path.read_text().replace("  lambda: 1.0", "  lambda: 0.75"))
    words = ["--root", str(path.parent), "report"]
    monkeypatch.delenv("DVC_STAGE", raising=False)
    assert main(words) == 2
    assert "signals.lambda: 1.0 -> 0.75" in capsys.readouterr().err
    monkeypatch.setenv("DVC_STAGE", "report")
    assert main(words) == 2
    assert "signals.lambda" not in capsys.readouterr().err


def test_where_git_has_no_such_file_nothing_is_said(path):
    other = path.parent / "other.yaml"
    shutil.copyfile(path, other)
    assert note(other) == ""
    shutil.rmtree(path.parent / ".git")
    assert note(path) == ""
