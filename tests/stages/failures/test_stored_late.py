"""A stage that is killed after its training, while the runs are stored: nothing of the record is lost."""

from __future__ import annotations

import golden_cases as golden
import pytest

from rlanything.runs import provenance
from rlanything.runs.layout import Layout
from rlanything.stages import train
from rlanything.stages.missing import missing_runs

ARM = "outcome"
pytestmark = [pytest.mark.integration, pytest.mark.long]


def killed(*_: object, **__: object) -> None:
    raise KeyboardInterrupt


def starts(root) -> list[str]:
    return [start["at"] for start in provenance.read(root, ARM)["starts"]]


def test_a_kill_before_the_live_folder_goes_keeps_every_start(tmp_path, monkeypatch):
    root = golden.project(tmp_path / "project")
    with monkeypatch.context() as patch:
        patch.setattr(train.atomic, "remove", killed)
        with pytest.raises(KeyboardInterrupt):
            golden.run(root, ARM)
    (first,) = starts(root)
    golden.check(ARM, golden.run(root, ARM))
    assert starts(root)[0] == first
    assert len(starts(root)) == 2
    assert not list((root / ".rla" / "live").glob("*/*"))


def test_runs_without_their_record_are_not_taken_for_stored_ones(tmp_path, monkeypatch):
    """Checks and sweeps ask for what is missing, and run no stage that is not."""
    root, config = golden.project(tmp_path / "project"), golden.configuration()
    with monkeypatch.context() as patch:
        patch.setattr(train.provenance, "write", killed)
        with pytest.raises(KeyboardInterrupt):
            golden.run(root, ARM)
    assert Layout(root).run(ARM, 0).is_dir()
    assert ("train", "--arm", ARM) in missing_runs(config, root, [ARM])
    golden.check(ARM, golden.run(root, ARM))
    assert len(starts(root)) == 2
    assert ("train", "--arm", ARM) not in missing_runs(config, root, [ARM])
