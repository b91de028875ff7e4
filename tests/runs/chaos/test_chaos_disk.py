"""A full disk and one that cannot be written to: one clear line, nothing half done, and the same bytes afterwards."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from small_disk import inside
from stage_cases import ROOT, SMALL, contents

from rlanything.planning import compose

pytestmark = pytest.mark.integration


@pytest.fixture
def empty(tmp_path) -> Path:
    """A project with a configuration and nothing else."""
    root = tmp_path / "project"
    root.mkdir()
    (root / "experiments").symlink_to(ROOT / "experiments")
    compose.write(root / "params.yaml", list(SMALL), ROOT)
    return root


@pytest.fixture
def project(tiny_project, empty) -> Path:
    """A project of one's own with tasks and models."""
    for name in ("data", "models"):
        shutil.copytree(tiny_project / name, empty / name)
    return empty


def test_a_disk_that_is_full_at_any_point_of_a_run_costs_nothing_but_the_space(tmp_path):
    found = inside(f"mount -t tmpfs -o size=4m none {tmp_path}", ["fill", str(tmp_path)])
    assert found["failures"] > 20


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("seeds", [1, 2])
def test_a_training_on_a_full_disk_says_so_in_one_line_and_goes_on_when_there_is_space(
    project, undisturbed, tmp_path, seeds
):
    """Two seeds have a process each: one that finds no space ends the other, and the command says where it was."""
    compose.write(project / "params.yaml", [*SMALL, f"train.seeds={seeds}", f"train.workers={seeds}"], ROOT)
    disk = tmp_path / "disk"
    disk.mkdir()
    found = inside(f"mount -t tmpfs -o size=160m none {disk}", ["train", str(disk), str(project)])
    *failed, (code, _) = found["starts"]
    assert code == 0
    assert len(failed) >= 4
    for code, last in failed:
        assert code == 2
        assert last.startswith(f"rlanything: No space left on device: {disk}/project/")
        assert last.endswith(
            f"the same command goes on from there: rlanything --root {disk}/project train --arm full"
        )
    assert contents(tmp_path / "on-small-disk") == contents(undisturbed)


@pytest.mark.long
def test_a_project_that_cannot_be_written_to_is_refused_before_any_work(empty):
    before = contents(empty)
    mount = f"mount --bind {empty} {empty}\nmount -o remount,ro,bind {empty}"
    words = ["tasks", "bootstrap", "train --arm full", "evaluate --arm base"]
    for command, (code, last) in zip(words, inside(mount, ["start", str(empty), *words]), strict=True):
        assert code == 2, command
        assert last.startswith(f"rlanything: {empty}: cannot be written to"), command
    assert contents(empty) == before


def test_a_result_folder_that_cannot_be_written_to_is_refused_before_any_work(empty):
    results = empty / "runs"
    results.mkdir()
    mount = f"mount --bind {results} {results}\nmount -o remount,ro,bind {results}"
    ((code, last),) = inside(mount, ["start", str(empty), "train --arm full"])
    assert code == 2
    assert last.startswith(f"rlanything: {results}: cannot be written to")
