"""A run on the real loop: what it leaves, and that being killed at any moment changes none of it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from stage_cases import ROOT, lines, small
from transformers import AutoModelForCausalLM

from rlanything.buffer import read_events, read_snapshot
from rlanything.core.errors import ConfigError
from rlanything.runs.folder import RunFolder
from rlanything.runs.layout import Layout
from rlanything.stages import train

HERE = Path(__file__).parent
ARM = "full"
pytestmark = [pytest.mark.integration, pytest.mark.timeout(3600)]


def copy(project: Path, to: Path) -> Path:
    """A project of one's own with the same inputs."""
    shutil.copytree(project, to, symlinks=True, ignore=shutil.ignore_patterns("runs", ".rla"))
    return to


def test_a_run_leaves_every_iteration_both_models_and_nothing_half_done(undisturbed):
    iterations = small().train.iterations
    rows = lines(undisturbed / "metrics.jsonl")
    assert [row["iteration"] for row in rows] == list(range(iterations + 1))
    assert all("panel/in_domain" in row for row in rows)
    first, last = (read_snapshot(undisturbed / "buffer" / f"iter_{k:04d}.jsonl") for k in (0, iterations + 1))
    events = read_events(undisturbed / "buffer" / "events.jsonl").events
    assert first.apply(events).digest == last.digest
    for name in ("policy", "reward"):
        assert AutoModelForCausalLM.from_pretrained(undisturbed / "checkpoints" / name)
    root = undisturbed.parents[2]
    assert not list((root / ".rla" / "live").iterdir())
    assert not list(root.rglob(".tmp-*"))


def test_both_models_are_not_what_they_were_at_the_start(undisturbed, tiny_project):
    for name in ("policy", "reward"):
        before, after = (
            AutoModelForCausalLM.from_pretrained(folder).state_dict()
            for folder in (tiny_project / "models" / name, undisturbed / "checkpoints" / name)
        )
        assert any(not torch.equal(before[key], after[key]) for key in before), name


@pytest.mark.parametrize(
    "kills", [pytest.param(2, marks=pytest.mark.long), pytest.param(300, marks=pytest.mark.slow)]
)
def test_a_run_that_is_killed_again_and_again_ends_with_the_same_bytes(tiny_project, tmp_path, kills):
    root, keep = copy(tiny_project, tmp_path / "project"), tmp_path / "kept"
    keep.mkdir()
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": f"{ROOT}:{HERE.parent}"}
    command = [sys.executable, str(HERE / "train_here.py"), str(root), ARM, str(keep), str(kills)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=3600, check=False)
    assert done.returncode == 0, done.stderr
    count, while_publishing = map(int, done.stdout.split())
    assert count >= kills
    assert while_publishing >= kills / 20
    assert "resuming after iteration" in done.stderr


@pytest.mark.long
def test_a_seed_that_was_finished_is_not_trained_again(tiny_project, tmp_path, monkeypatch):
    config = small("train.iterations=1", "train.seeds=2", "train.workers=1")
    root = copy(tiny_project, tmp_path / "project")
    trained: list[int] = []
    train_seed = train.train_seed

    def killed_in_the_second(data, where, key, arm, seed):
        trained.append(seed)
        if trained == [0, 1]:
            raise KeyboardInterrupt
        train_seed(data, where, key, arm, seed)

    monkeypatch.setattr(train, "train_seed", killed_in_the_second)
    with pytest.raises(KeyboardInterrupt):
        train.train_arm(config, root, ARM)
    train.train_arm(config, root, ARM)
    assert trained == [0, 1, 1]
    first, second = (Layout(root).run(ARM, seed) for seed in (0, 1))
    assert (first / "metrics.jsonl").read_text() != (second / "metrics.jsonl").read_text()


@pytest.mark.parametrize(
    "when", [pytest.param("between two seeds", marks=pytest.mark.long), "between two iterations"]
)
def test_inputs_that_are_exchanged_on_the_way_are_named_and_nothing_is_made_with_them(
    tiny_project, tmp_path, monkeypatch, when
):
    config = small("train.iterations=1", "train.seeds=2", "train.workers=1")
    root = copy(tiny_project, tmp_path / "project")
    model = root / "models" / "policy" / "model.safetensors"
    before, other = model.read_bytes(), (root / "models" / "adapter" / "model.safetensors").read_bytes()
    publish = RunFolder.publish

    def exchanges(folder, iteration, write):
        publish(folder, iteration, write)
        if iteration == (1 if when == "between two seeds" else 0):
            model.write_bytes(other)

    monkeypatch.setattr(RunFolder, "publish", exchanges)
    with pytest.raises(ConfigError, match=r"models/policy/model.safetensors: \w+ -> \w+\. The published"):
        train.train_arm(config, root, ARM)
    monkeypatch.undo()
    published = sorted(
        p.relative_to(p.parents[2]).as_posix() for p in root.glob(".rla/live/*/*/*/iterations/*")
    )
    first = ["seed-0/iterations/0000", "seed-0/iterations/0001"]
    assert published == (first if when == "between two seeds" else first[:1])
    assert not (root / "runs").exists()
    model.write_bytes(before)
    train.train_arm(config, root, ARM)
    assert Layout(root).run(ARM, 1).is_dir()


def test_a_reward_model_whose_replies_nobody_can_read_ends_the_run_and_nothing_of_the_iteration_is_published(
    tiny_project, tmp_path
):
    asked = (
        "train.iterations=1",
        "train.seeds=1",
        "model.verdict_format=boxed",
    )  # which this one was not taught
    root = copy(tiny_project, tmp_path / "project")
    named = r"iteration 0: 100% of the reward model's replies hold no .*more than judge\.max_invalid = 99%.*Check "
    with pytest.raises(ConfigError, match=named):
        train.train_arm(small(*asked, "judge.max_invalid=0.99"), root, ARM)
    assert not list(root.glob(".rla/live/*/*/*/iterations/*"))
    train.train_arm(small(*asked, "judge.max_invalid=1"), root, ARM)
    assert lines(Layout(root).run(ARM, 0) / "metrics.jsonl")[0]["invalid_votes"] == 1
