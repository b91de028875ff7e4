"""After a power loss at any moment, with whatever of the unsynced writes on folders, a run ends with the same bytes."""

from __future__ import annotations

import random
import shutil
from functools import partial
from pathlib import Path

import powerloss
import pytest
import small_run
from stage_cases import contents, small

from rlanything.files import atomic
from rlanything.runs.folder import RunFolder
from rlanything.runs.layout import Layout
from rlanything.stages import train


@pytest.mark.long
@pytest.mark.parametrize("every", [5, pytest.param(1, marks=pytest.mark.slow)])
def test_a_run_survives_a_kill_or_a_power_loss_before_any_change_of_the_disk(memory, every):
    """About two thousand different disks; the fast test restarts on every fifth of them."""
    root, again = small_run.prepare(memory / "run"), memory / "again"
    losses = list(powerloss.power_losses(root, partial(small_run.run, root), seed=0))
    assert len(losses) > 500
    for change, left in losses[::every]:
        powerloss.write(left, again)
        try:
            small_run.check(again)
            small_run.run(again)
            small_run.finished(again)
        except BaseException as error:
            error.add_note(f"power lost before change {change}")
            raise
        shutil.rmtree(again)


@pytest.mark.parametrize("left_out", ["sync_tree", "sync"])
def test_the_model_finds_a_sync_that_is_left_out(memory, monkeypatch, left_out):
    """A check that cannot fail proves nothing: without its syncs the same run does not survive."""
    monkeypatch.setattr(atomic, left_out, lambda path: None)
    with pytest.raises((AssertionError, ValueError, OSError)):
        test_a_run_survives_a_kill_or_a_power_loss_before_any_change_of_the_disk(memory, 1)


def test_what_is_synced_stays_and_what_is_not_may_be_lost(memory):
    def work() -> None:
        folder = memory / "run" / "new"
        folder.mkdir()
        for name in ("kept", "torn"):
            (folder / name).write_text(name)
        for path in (folder / "kept", folder, folder.parent):
            atomic.sync(path)
        (folder / "later").write_text("later")

    (memory / "run").mkdir()
    losses = list(powerloss.power_losses(memory / "run", work, seed=0))
    ends = [left for change, left in losses if change == powerloss.END]
    assert {} in [left for _, left in losses]
    assert {end["new/kept"] for end in ends} == {b"kept"}
    assert {end["new/torn"] for end in ends} > {b""}
    assert {"new/later" in left for _, left in losses if "new/torn" in left} == {True, False}


@pytest.mark.slow
@pytest.mark.integration
@pytest.mark.timeout(3600)
def test_a_real_training_survives_power_losses(tiny_project, undisturbed, memory):
    def project(name: str) -> Path:
        (memory / name).mkdir(exist_ok=True)
        for linked in ("data", "models", "experiments"):
            (memory / name / linked).symlink_to(tiny_project / linked)
        return memory / name

    root, again = project("run"), memory / "again"
    parts = [(RunFolder, "publish"), (RunFolder, "export"), (train, "place"), (atomic, "remove")]
    losses = list(powerloss.power_losses(root, lambda: train.train_arm(small(), root, "full"), 0, parts))
    assert len(losses) > 300
    for _, left in random.Random(0).sample(losses, 12):
        powerloss.write(left, again)
        train.train_arm(small(), project("again"), "full")
        assert contents(Layout(again).run("full", 0)) == contents(undisturbed)
        shutil.rmtree(again)
