"""What a checkpoint is made of: the files of a folder, a commit in the hub's cache."""

from __future__ import annotations

import hashlib

import pytest

from rlanything.config import Checkpoint
from rlanything.core.errors import ConfigError
from rlanything.engines.sources import contents, is_local, named, source, unchanged


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """The hub's cache with one repository, of which a branch and a tag are known."""
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "hub"))
    place = tmp_path / "hub" / "models--someone--tiny"
    for branch, commit in (("main", "0" * 40), ("v1", "1" * 40)):
        (place / "refs").mkdir(parents=True, exist_ok=True)
        (place / "refs" / branch).write_text(commit)
        (place / "snapshots" / commit).mkdir(parents=True)
        (place / "snapshots" / commit / "config.json").write_text("{}")
    return place


def test_a_folder_is_its_files_that_count(tmp_path):
    for name in ("config.json", "model.safetensors", "README.md", ".cache/huggingface/model.metadata"):
        (tmp_path / "mine" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "mine" / name).write_text(name)
    hashes = {n: hashlib.sha256(n.encode()).hexdigest() for n in ("config.json", "model.safetensors")}
    assert contents(Checkpoint(path="mine"), tmp_path) == hashes
    outside = Checkpoint(path=str(tmp_path / "mine"))
    assert contents(outside, tmp_path / "project") == hashes
    assert named(outside, tmp_path / "project") == {f"{tmp_path}/mine/{n}": h for n, h in hashes.items()}
    assert named(Checkpoint(path="./mine"), tmp_path).keys() == {"mine/config.json", "mine/model.safetensors"}


def test_a_folder_that_is_missing_is_made_of_nothing(tmp_path):
    gone = Checkpoint(path=str(tmp_path / "gone"))
    assert is_local(gone, tmp_path)
    assert contents(gone, tmp_path) == named(gone, tmp_path) == {}


@pytest.mark.parametrize(
    ("revision", "name", "commit"),
    [
        (None, "someone/tiny", "0" * 40),
        ("main", "someone/tiny@main", "0" * 40),
        ("v1", "someone/tiny@v1", "1" * 40),
        ("1" * 40, f"someone/tiny@{'1' * 40}", "1" * 40),
    ],
)
def test_a_name_on_the_hub_is_the_commit_in_the_cache(cache, tmp_path, revision, name, commit):
    tiny = Checkpoint(path="someone/tiny", revision=revision)
    assert contents(tiny, tmp_path) == {"commit": commit}
    assert named(tiny, tmp_path) == {name: commit}
    assert source(tiny, tmp_path) == "someone/tiny"


def test_what_is_not_in_the_cache_is_not_known(cache, tmp_path):
    assert contents(Checkpoint(path="someone/new"), tmp_path) == {}
    assert named(Checkpoint(path="someone/tiny", revision="v2"), tmp_path) == {}
    with pytest.raises(ConfigError, match="no name on the hub"):
        contents(Checkpoint(path="no/such/name"), tmp_path)


def test_a_folder_that_changes_while_it_is_in_use_is_named(tmp_path):
    weights = tmp_path / "mine" / "model.safetensors"
    weights.parent.mkdir()
    weights.write_text("first")
    mine = Checkpoint(path="mine")
    with unchanged(tmp_path, mine, None):
        pass
    with pytest.raises(ConfigError, match="mine: it changed while it was in use"), unchanged(tmp_path, mine):
        weights.write_text("other")
