"""What an arm did not begin from may change before it is measured, and what its judge began from may not.

The comparison itself: tests/runs/resuming/test_began.py."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import golden_cases as golden
import pytest

from rlanything.core.errors import ConfigError
from rlanything.files import hashes
from rlanything.runs import provenance
from rlanything.runs.folder import RunFolder
from rlanything.runs.layout import Layout
from rlanything.stages import evaluate, train
from rlanything.stages.missing import run_command


def ended(config, root, origin, arm, seeds, weights: str = "first") -> None:
    """As a training ends."""
    for seed in seeds:
        finished = RunFolder(Layout(root).live(origin.key, arm, seed)).finished
        (finished / "checkpoints" / "reward").mkdir(parents=True)
        (finished / "checkpoints" / "reward" / "model.safetensors").write_text(f"{weights} {seed}")


def killed(*_: object) -> None:
    raise KeyboardInterrupt


@pytest.fixture
def project(tmp_path, monkeypatch) -> Path:
    """A project with runs of two arms. To measure takes no time, and to train took none."""
    monkeypatch.delenv("DVC_STAGE", raising=False)
    monkeypatch.setattr(evaluate, "_measure", lambda config, root, arm: {"seeds": {"0": {}}})
    monkeypatch.setattr(train, "_train", ended)
    root = golden.project(tmp_path / "project")
    for arm in ("outcome", "policy_reward", "step_only"):
        train.train_arm(golden.configuration(), root, arm)
    return root


def measure(root: Path, arm: str) -> None:
    run_command(golden.configuration(), root, ("evaluate", "--arm", arm))


def change(root: Path, name: str) -> None:
    """As another bootstrap would."""
    (root / name).write_text((root / name).read_text() + " ")


def test_an_arm_is_refused_too_where_its_judge_began_from_other_models(project):
    """`step_only` is judged by the reward model that `policy_reward` trained from the base reward model."""
    change(project, "models/reward/config.json")
    with pytest.raises(ConfigError, match="runs/policy_reward: these runs began"):
        measure(project, "step_only")


def test_a_kill_before_the_new_record_is_written_leaves_none(project, monkeypatch):
    """The same training writes it then, and trains nothing."""
    record = Layout(project).provenance("outcome")
    change(project, "models/policy/config.json")
    with monkeypatch.context() as patch:
        patch.setattr(train, "_train", partial(ended, weights="second"))
        patch.setattr(provenance, "write", killed)
        with pytest.raises(KeyboardInterrupt):
            train.train_arm(golden.configuration(), project, "outcome")
    assert not record.exists()
    measure(project, "outcome")
    trained: list[int] = []
    monkeypatch.setattr(train, "_train", lambda config, root, origin, arm, seeds: trained.extend(seeds))
    train.train_arm(golden.configuration(), project, "outcome")
    assert trained == []
    measure(project, "outcome")
    change(project, "models/policy/config.json")
    with pytest.raises(ConfigError, match="runs/outcome: these runs began"):
        measure(project, "outcome")


@pytest.mark.parametrize(
    "name", ["models/adapter/config.json", "data/tasks/in_domain.jsonl", "models/bootstrap.json"]
)
def test_what_the_arm_did_not_begin_from_may_change(project, name):
    change(project, name)
    measure(project, "outcome")


def test_no_other_file_is_hashed(project, monkeypatch):
    """Such as a large checkpoint that lies in models/."""
    checkpoint = project / "models" / "large" / "model.safetensors"
    checkpoint.parent.mkdir()
    checkpoint.write_text("weights")
    hashes.forget()
    read = []
    whole = hashes.sha256
    monkeypatch.setattr(hashes, "sha256", lambda path: read.append(path) or whole(path))
    measure(project, "outcome")
    assert project / "models" / "policy" / "config.json" in read
    assert checkpoint not in read


def test_dvc_which_trains_again_by_itself_is_left_alone(project, monkeypatch):
    change(project, "models/policy/config.json")
    monkeypatch.setenv("DVC_STAGE", "evaluate@outcome")
    measure(project, "outcome")


def test_a_record_without_its_runs_says_nothing(project):
    """Git has the record of the repository's runs."""
    change(project, "models/policy/config.json")
    (project / "runs" / "outcome").rename(project / "elsewhere")
    measure(project, "outcome")
