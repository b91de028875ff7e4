"""Revisions in a partial clone: git fetches nothing for a comparison, which says what is missing."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from compare_cases import experiment, recorded

from rlanything.compare.revision import of_revision, resolve
from rlanything.core.errors import ConfigError

UNREAD = "report/unread.md"


def git(where: Path, *words: str) -> str:
    command = ["git", "-C", str(where), *words]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def fetch(clone: Path, *names: str) -> None:
    for name in names:
        git(clone, "show", f"HEAD:{name}")


@pytest.fixture
def partial(tmp_path):
    """A clone of a recorded experiment that has its commits and folders, and no file of them."""
    source = experiment(tmp_path / "source")
    (source / "report").mkdir(exist_ok=True)
    (source / UNREAD).write_text("One line.\n")
    recorded(source, "first")
    git(source, "config", "uploadpack.allowFilter", "true")
    git(tmp_path, "clone", "--filter=blob:none", "--no-checkout", source.as_uri(), "place")
    return tmp_path / "place"


def test_a_file_that_git_has_not_fetched_is_named_with_what_fetches_it(partial):
    said = r"HEAD: params.yaml: git cannot read it here\. .* `git show \w{12}:\./params.yaml` fetches it, a comparison"
    with pytest.raises(ConfigError, match=said):
        of_revision("A", "HEAD", partial)
    assert git(partial, "rev-list", "--objects", "--no-walk", "--missing=print", "HEAD").count("?") > 3


def test_once_its_own_files_are_there_a_revision_is_read(partial):
    fetch(partial, *(n for n in git(partial, "ls-tree", "-r", "--name-only", "HEAD").split() if n != UNREAD))
    first = of_revision("A", "HEAD", partial)
    assert first.arms["full"].recorded["in_domain"].mean == pytest.approx(0.6, abs=0.1)


def test_what_a_commit_has_not_is_not_missing(partial):
    fetch(partial, "params.yaml")
    found = resolve("HEAD", partial)
    assert found is not None
    assert found.read("params.yaml")
    assert found.read("nothing.yaml") is None
