"""What a run is made from stays the same while it is trained; a start that does not go on from another says why."""

from __future__ import annotations

import hashlib
import os
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from stage_cases import ROOT, small

from rlanything.core.errors import ConfigError
from rlanything.files import hashes
from rlanything.files.hashes import counts
from rlanything.runs import imports
from rlanything.runs.fingerprint import Origin, made_from
from rlanything.runs.resuming.origins import begin, unchanged, unfinished

PROMPTS = "experiments/prompts/embedded"
FILES = ("data/tasks/train.jsonl", "models/policy/model.safetensors", f"{PROMPTS}/judge.txt")
CODE = ("rlanything/learn/losses.py", "envs/alfworld/facts/rooms.json", "envs/alfworld/facts/alfred.twl2")


@pytest.fixture(scope="module")
def code(tmp_path_factory) -> Path:
    """A copy of the code. A test that changes it takes that back: to read all of it anew takes a second."""
    place = tmp_path_factory.mktemp("code")
    for name in imports.PACKAGES:
        shutil.copytree(ROOT / name, place / name, ignore=shutil.ignore_patterns("__pycache__"))
    return place


@pytest.fixture
def root(code, tmp_path, monkeypatch) -> Path:
    """A project whose code is that copy."""
    for name in FILES[:2]:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(name)
    shutil.copytree(ROOT / PROMPTS, tmp_path / PROMPTS)
    for name in imports.PACKAGES:
        (tmp_path / name).symlink_to(code / name)
    monkeypatch.setattr(imports, "package_folder", lambda name: code / name)
    return tmp_path


def origin(root: Path) -> Origin:
    return made_from(small(), root, "full")


@pytest.mark.parametrize("name", [*FILES, *CODE])
def test_a_file_that_changes_is_named_and_is_fine_again_when_it_is_what_it_was(root, name):
    began = origin(root)
    check = unchanged(small(), root, "full", began)
    check()
    before = (root / name).read_bytes()
    (root / name).write_bytes(before + b" ")
    with pytest.raises(ConfigError, match=rf"changed while arm full was trained: {name}: \w+ -> \w+\."):
        check()
    assert origin(root).key != began.key
    (root / name).write_bytes(before)
    check()
    assert origin(root) == began


def test_code_outside_of_the_project_that_changes_is_named(root, tmp_path_factory, monkeypatch):
    place = tmp_path_factory.mktemp("outside")
    (place / "origins_outside.py").write_text("")
    monkeypatch.syspath_prepend(place)
    config = small()
    config = config.model_copy(update={"env": {"_target_": "origins_outside.Family"}})
    check = unchanged(config, root, "full", made_from(config, root, "full"))
    check()
    (place / "origins_outside.py").write_text("another = 1\n")
    with pytest.raises(
        ConfigError, match=r"changed while arm full was trained: origins_outside\.py: \w+ -> \w+\."
    ):
        check()


def test_a_file_of_the_same_size_and_time_is_read_when_it_was_exchanged(root):
    place = root / FILES[1]
    check = unchanged(small(), root, "full", origin(root))
    check()
    state = place.stat()
    place.write_text(FILES[1].upper())
    os.utime(place, ns=(state.st_atime_ns, state.st_mtime_ns))
    with pytest.raises(ConfigError, match=FILES[1]):
        check()


def test_weights_outside_of_the_project_that_change_are_named_and_read_once(
    root, tmp_path_factory, monkeypatch
):
    weights = tmp_path_factory.mktemp("elsewhere") / "model.safetensors"
    weights.write_text("first")
    config = small(f"model.policy.path={weights.parent}")
    read: list[Path] = []
    monkeypatch.setattr(
        hashes, "sha256", lambda path: read.append(path) or hashlib.sha256(path.read_bytes()).hexdigest()
    )
    check = unchanged(config, root, "full", made_from(config, root, "full"))
    check()
    check()
    assert read.count(weights) == 1, "a publication compares size and times"
    hashes.forget()
    check()
    assert read.count(weights) == 2, "the end of the stage reads it again"
    weights.write_text("other")
    with pytest.raises(ConfigError, match=rf"changed while arm full was trained: {weights}: \w+ -> \w+\."):
        check()


@pytest.mark.parametrize("name", FILES)
def test_a_file_that_is_gone_or_new_is_named(root, name):
    check = unchanged(small(), root, "full", origin(root))
    (root / name).rename(root / f"{name}.bak")
    with pytest.raises(ConfigError, match=rf"{name}: gone .*{name}.bak: new"):
        check()


def test_all_that_counts_in_a_folder_of_prompts_is_part_of_the_name(root):
    before = origin(root).key
    (root / PROMPTS / "README.md").write_text("for people")
    (root / PROMPTS / ".judge.txt.swp").write_text("of an editor")
    assert origin(root).key == before
    (root / PROMPTS / "judge.jinja").write_text("for the model")
    assert origin(root).key != before


def test_another_version_of_a_package_is_another_run_but_made_from_the_same(root):
    here = origin(root)
    assert here.packages.keys() >= {
        "Python", "lightning", "numpy", "safetensors", "tokenizers", "torch", "transformers"
    }  # fmt: skip
    assert not here.packages.keys() & {"pytest", "optuna", "ruff"}
    there = replace(here, packages={**here.packages, "torch": "0.0.1"})
    assert there.key != here.key
    assert there.fingerprint == here.fingerprint


def test_a_start_that_does_not_go_on_from_another_says_why(root):
    here = origin(root)
    there = replace(here, packages={**here.packages, "torch": "0.0.1"})
    first, second = (root / ".rla" / "live" / key / "full" for key in ("one", "two"))
    assert begin(first, "full", there) is None
    assert begin(root / ".rla" / "live" / "zero" / "full", "full", here) is None, "nothing is published"
    (first / "seed-0" / "iterations" / "0000").mkdir(parents=True)
    assert begin(second, "full", here) == (
        f"starts from the beginning; {first} holds an unfinished run of the same arm with another origin: "
        f"torch: 0.0.1 -> {here.packages['torch']}. Undo these changes to resume it, or remove the folder"
    )
    assert begin(second, "full", here) is None, "it goes on from itself"
    assert begin(root / ".rla" / "live" / "one" / "policy", "policy", here) is None


@pytest.mark.parametrize(
    "folder", ["data/tasks", "envs/alfworld", "models/policy", "rlanything/loop", PROMPTS]
)
@pytest.mark.parametrize(
    "name", ["a.py", "a.txt", "a.json", "a.jinja", "a.md", "a.pyc", "__pycache__/a.py", ".a", ".b/a.txt"]
)
def test_dvc_ignores_what_does_not_count(dvc_ignores, folder, name):
    assert dvc_ignores(f"{folder}/{name}") != counts(Path(name))


@pytest.fixture(scope="module")
def dvc_ignores(tmp_path_factory):
    """Whether DVC, in a project with this one's .dvcignore, ignores a file."""
    from dvc.repo import Repo

    root = tmp_path_factory.mktemp("dvc")
    shutil.copy(ROOT / ".dvcignore", root)
    repo = Repo.init(str(root), no_scm=True)

    def ignored(name: str) -> bool:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).touch()
        return bool(repo.dvcignore.is_ignored_file(str(root / name)))

    yield ignored
    repo.close()


@pytest.mark.parametrize("arm", ["a[b]", "full*", "?"])
def test_the_name_of_an_arm_is_no_pattern_for_folders(root, arm):
    one, other = root / ".rla" / "live" / "one", root / ".rla" / "live" / "other"
    for name in (arm, "full-more", "b"):
        begin(one / name, name, origin(root))
        (one / name / "seed-0" / "iterations" / "0000").mkdir(parents=True)
    assert list(unfinished(other / arm, arm)) == [one / arm]


def test_a_start_beside_a_folder_of_its_own_origin_says_how_that_comes_back(root):
    """It is left when `redivide` was killed in its middle, and the change of the division was undone."""
    began = origin(root)
    moved, live = (root / ".rla" / "live" / key / "full" for key in ("0123", began.key))
    for folder in (moved, live):
        folder.mkdir(parents=True)
    begin(moved, "full", began)
    (moved / "seed-0" / "iterations" / "0000").mkdir(parents=True)
    said = begin(live, "full", began)
    assert said is not None
    assert said.startswith(
        f"starts from the beginning; {moved} holds this run, whose division was being changed."
    )
    assert f"Remove {live}, then `rlanything redivide --arm full`" in said
