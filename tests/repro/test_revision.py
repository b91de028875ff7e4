"""What a record says of git: the commit, and what was changed and not committed."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from replay_cases import git

from rlanything.runs.machine import imported_from, revision


def test_the_revision_has_the_diff_and_not_what_the_pipeline_wrote(tmp_path):
    assert revision(tmp_path) is None
    git(tmp_path, "init")
    (tmp_path / "params.yaml").write_text("seed: 0\n")
    (tmp_path / "dvc.lock").write_text("a\n")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-m", "start")
    (tmp_path / "dvc.lock").write_text("b\n")
    found = revision(tmp_path)
    assert found is not None
    assert found["clean"]
    (tmp_path / "params.yaml").write_text("seed: 1\n")
    (tmp_path / "new.py").write_text("")
    found = revision(tmp_path)
    assert found is not None
    assert not found["clean"]
    assert "+seed: 1" in found["diff"]
    assert found["untracked"] == ["new.py"]


def test_the_revision_of_a_folder_that_git_ignores_is_that_of_its_project(tmp_path):
    workspace = tmp_path / ".rla" / "smoke"
    workspace.mkdir(parents=True)
    git(tmp_path, "init")
    (tmp_path / ".gitignore").write_text(".rla/\n")
    (tmp_path / "code.py").write_text("1\n")
    (tmp_path / "params.yaml").write_text("")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-m", "start")
    (workspace / "code.py").write_text("1\n")
    assert revision(workspace)["clean"]
    (tmp_path / "code.py").write_text("2\n")
    (tmp_path / "new.py").write_text("")
    assert revision(workspace) == revision(tmp_path)
    assert "+2" in revision(workspace)["diff"]


@pytest.fixture
def changed(tmp_path):
    """A repository with a change that is not committed."""
    git(tmp_path, "init")
    (tmp_path / "a.py").write_text("1\n")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-m", "start")
    (tmp_path / "a.py").write_text("2\n")
    return tmp_path


def test_no_setting_of_the_user_hides_a_change(changed):
    expected = revision(changed)
    assert "+2" in expected["diff"]
    git(changed, "config", "diff.external", "true")
    git(changed, "config", "color.diff", "always")
    assert revision(changed) == expected


def test_what_git_cannot_tell_is_not_called_clean(changed):
    git(changed, "update-index", "--assume-unchanged", "a.py")
    assert revision(changed)["clean"] is None
    git(changed, "update-index", "--no-assume-unchanged", "a.py")
    blob = subprocess.run(
        ["git", "rev-parse", "HEAD:a.py"], cwd=changed, capture_output=True, text=True, check=True
    ).stdout.strip()
    (changed / ".git" / "objects" / blob[:2] / blob[2:]).unlink()
    assert revision(changed)["clean"] is None


def test_code_that_git_ignores_is_named(changed):
    git(changed, "commit", "-am", "all of it")
    (changed / ".git" / "info").mkdir(exist_ok=True)
    (changed / ".git" / "info" / "exclude").write_text("mine/\n")
    (changed / "mine").mkdir()
    (changed / "mine" / "b.py").write_text("")
    assert revision(changed)["clean"] is True
    found = revision(changed, ["a.py", "mine/b.py"])
    assert (found["clean"], found["untracked"]) == (False, ["mine/b.py"])


@pytest.mark.parametrize("ignored", ["*", "nothing"])
def test_a_repository_around_the_project_counts_only_if_it_has_the_project(tmp_path, ignored):
    git(tmp_path, "init")
    (tmp_path / ".gitignore").write_text(f"{ignored}\n")
    git(tmp_path, "add", "-f", ".")
    git(tmp_path, "commit", "-m", "a home folder")
    project = tmp_path / "project"
    project.mkdir()
    (project / "params.yaml").write_text("seed: 0\n")
    assert revision(project) is None
    git(tmp_path, "add", "-f", ".")
    git(tmp_path, "commit", "-m", "with the project")
    assert revision(project)["clean"] is True


def test_code_of_another_folder_is_told(tmp_path):
    root = Path(__file__).parents[2]
    assert imported_from(root) is None
    assert imported_from(tmp_path) == str(root)
    (tmp_path / "rlanything").symlink_to(root / "rlanything")
    assert imported_from(tmp_path) is None
