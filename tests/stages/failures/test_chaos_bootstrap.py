"""The base models of a killed bootstrap: whole or not there, all of one start; those that were finished are kept."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path
from unittest import mock

import powerloss
import pytest
from stage_cases import ROOT, SMALL, contents, small

from rlanything.config import parse
from rlanything.core.errors import ConfigError
from rlanything.files import atomic
from rlanything.files.atomic import write_text
from rlanything.planning import compose
from rlanything.runs.layout import Layout
from rlanything.stages import train
from rlanything.stages.bootstrap import stage
from rlanything.stages.bootstrap.stage import make_models

MODELS = ("policy", "reward", "adapter")
FILES = ("config.json", "model.safetensors")


@pytest.fixture
def project(memory, monkeypatch):
    """A project with the models of an older bootstrap. The new ones are trained at once, and are worth a word each."""
    monkeypatch.setattr(stage, "_trained", trained)
    monkeypatch.setattr(stage, "_finish", lambda config, root, layout, earlier: ended(layout, earlier))
    monkeypatch.setattr(stage.build, "one_thread", lambda: None)
    return lambda name: older(memory / name)


def older(root: Path) -> Path:
    for model in MODELS:
        write_model(root / "models" / model, "old")
    finish(Layout(root), "old")
    return root


def trained(config, root: Path) -> Path:
    work = root / ".rla" / "bootstrap" / "key"
    for model in MODELS:
        if not (work / model).is_dir():
            with atomic.whole(work / model) as folder:
                write_model(folder, "new")
    return work


def write_model(folder: Path, word: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name in FILES:
        (folder / name).write_text(word)


def finish(layout: Layout, word: str) -> None:
    write_text(layout.reward_panel("reward_panel"), word)
    write_text(layout.bootstrap, word)


def ended(layout: Layout, earlier: str) -> None:
    """The end of the stage; bootstrap.json has the word of the models."""
    write_text(layout.reward_panel("reward_panel"), "new")
    with mock.patch.object(stage, "write_json", lambda path, _: write_text(path, "new")):
        stage._complete(layout, earlier, {})


def made_by(root: Path) -> str:
    """Which start made the models that a training would take."""
    try:
        Layout(root).check_bootstrap()
    except ConfigError:
        return "nobody"
    (word,) = {data.decode() for data in contents(root / "models").values()}
    assert len(contents(root / "models")) == len(MODELS) * len(FILES) + 2
    return word


def finished(root: Path) -> None:
    assert made_by(root) == "new"
    assert not (root / ".rla" / "bootstrap").exists()
    assert not list(root.rglob(".tmp-*")) + list(root.rglob(".old-*"))


def test_a_kill_or_a_power_loss_during_a_bootstrap_leaves_no_mixed_models(project):
    config, root = small(), project("run")
    again, found = root.with_name("again"), set()
    for _, left in powerloss.power_losses(root, partial(make_models, config, root), seed=0):
        powerloss.write(left, again)
        found.add(made_by(again))
        make_models(config, again)
        finished(again)
        shutil.rmtree(again)
    assert found == {"nobody", "old", "new"}


def test_what_was_measured_with_other_models_never_stands_beside_the_new_ones(project, monkeypatch):
    monkeypatch.delenv("DVC_STAGE", raising=False)
    config, root = small(), project("run")
    again, found = root.with_name("again"), set()
    for arm in ("base", "full"):
        write_text(Layout(root).evaluation(arm), "measured with the old")
    for _, left in powerloss.power_losses(root, partial(make_models, config, root), seed=0):
        powerloss.write(left, again)
        found.add((made_by(again), (again / "evaluation" / "base.json").is_file()))
        make_models(config, again)
        assert not list((again / "evaluation").iterdir())
        shutil.rmtree(again)
    assert ("old", True) in found
    assert ("new", True) not in found


def test_the_same_models_keep_what_was_measured_with_them(project, monkeypatch):
    monkeypatch.delenv("DVC_STAGE", raising=False)
    config, root = small(), project("run")
    make_models(config, root)
    write_text(Layout(root).evaluation("base"), "measured with the new")
    make_models(config, root)
    assert Layout(root).evaluation("base").is_file()


def test_dvc_measures_again_by_itself(project, monkeypatch):
    monkeypatch.setenv("DVC_STAGE", "bootstrap")
    config, root = small(), project("run")
    write_text(Layout(root).evaluation("base"), "measured with the old")
    make_models(config, root)
    assert Layout(root).evaluation("base").is_file()


@pytest.mark.slow
@pytest.mark.integration
@pytest.mark.timeout(3600)
def test_a_real_bootstrap_keeps_the_models_that_were_finished_when_it_was_killed(tiny_project, tmp_path):
    root = tmp_path / "project"
    shutil.copytree(tiny_project, root, symlinks=True, ignore=shutil.ignore_patterns("models", ".rla"))
    compose.write(root / "params.yaml", list(SMALL), ROOT)
    command = [sys.executable, "-m", "rlanything", "--root", str(root), "bootstrap"]
    options = {"env": {**os.environ, "PYTHONPATH": str(ROOT)}, "stderr": subprocess.PIPE, "text": True}
    kept = ".rla/bootstrap/*/policy/model.safetensors"
    with subprocess.Popen(command, **options) as first:
        while first.poll() is None and not list(root.glob(kept)):
            time.sleep(0.05)
        first.send_signal(signal.SIGKILL)
    before = [path.stat().st_ino for path in root.glob(kept)]
    assert before
    assert not (root / "models").exists()
    with pytest.raises(ConfigError, match=r"bootstrap\.json: no such file"):
        train.train_arm(parse(compose.compose(list(SMALL), ROOT)), root, "full")
    again = subprocess.run(command, check=True, **options)
    assert "bootstrap: policy" not in again.stderr
    assert "bootstrap: reward" in again.stderr
    assert contents(root / "models") == contents(tiny_project / "models")
