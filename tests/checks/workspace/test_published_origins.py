"""What the runs of a check were made from is published beside its results."""

from __future__ import annotations

import json
from importlib import metadata

import golden_cases as golden
import pytest

from rlanything.checks import origins
from rlanything.files.records import write_json
from rlanything.runs import provenance
from rlanything.runs.folder import RunFolder
from rlanything.runs.layout import Layout
from rlanything.stages import train

ARMS = ("outcome", "policy_reward")


def ended(config, root, origin, arm, seeds) -> None:
    """In the place of the training of seeds."""
    for seed in seeds:
        finished = RunFolder(Layout(root).live(origin.key, arm, seed)).finished
        finished.mkdir(parents=True)
        (finished / "weights").write_text(f"{arm} {seed}")


@pytest.fixture
def workspace(tmp_path, monkeypatch):
    root = golden.project(tmp_path / "project")
    monkeypatch.setattr(train, "_train", ended)
    for arm in ARMS:
        train.train_arm(golden.configuration(), root, arm)
    return root


def test_records_are_copied_and_what_runs_were_started_with_is_said_once(workspace, tmp_path):
    published = tmp_path / "published"
    published.mkdir()
    origins.publish(workspace, published)
    for arm in ARMS:
        kept, own = (Layout(place).provenance(arm).read_bytes() for place in (published, workspace))
        assert kept == own
    (found,) = json.loads((published / origins.MACHINES).read_text())
    assert found["arms"] == [*ARMS]
    assert found["packages"] == provenance.packages()
    assert found["machine"] == provenance.machine()
    assert not (published / "provenance" / "starts").exists()


def test_runs_that_were_started_with_other_packages_stand_apart(workspace, tmp_path, monkeypatch):
    monkeypatch.setattr(provenance, "packages", lambda: {"torch": "0.0.1"})
    train.train_arm(golden.configuration(), workspace, "outcome")
    origins.publish(workspace, tmp_path)
    found = json.loads((tmp_path / origins.MACHINES).read_text())
    versions = {arm: one["packages"]["torch"] for one in found for arm in one["arms"]}
    assert versions == {"outcome": "0.0.1", "policy_reward": metadata.version("torch")}


def test_where_an_evaluation_was_made_is_said_beside_the_runs(workspace, tmp_path, monkeypatch):
    for arm, version in (("base", "0.0.1"), ("outcome", metadata.version("torch"))):
        write_json(Layout(workspace).evaluation(arm), {"arm": arm})
        with monkeypatch.context() as patch:
            if arm == "base":
                patch.setattr(provenance, "packages", lambda version=version: {"torch": version})
            provenance.write_measured(workspace, arm, provenance.start(workspace, {}, {}, ()))
    write_json(Layout(workspace).evaluation("policy_reward"), {"arm": "policy_reward"})  # of an older version
    origins.publish(workspace, tmp_path)
    found = json.loads((tmp_path / origins.MACHINES).read_text())
    assert {one["packages"]["torch"]: one["measured"] for one in found} == {
        metadata.version("torch"): ["outcome"],
        "0.0.1": ["base"],
    }
