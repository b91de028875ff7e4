"""What a record says of git: the commit, and what was changed and not committed."""

from __future__ import annotations

from replay_cases import git

from rlanything.runs.machine import revision


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
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-m", "start")
    (workspace / "code.py").write_text("1\n")
    assert revision(workspace)["clean"]
    (tmp_path / "code.py").write_text("2\n")
    (tmp_path / "new.py").write_text("")
    assert revision(workspace) == revision(tmp_path)
    assert "+2" in revision(workspace)["diff"]
