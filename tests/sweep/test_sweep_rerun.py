"""Which trial can be run again, where, and from what; that it comes out the same is in test_sweep_worker.py."""

from __future__ import annotations

import json
import shutil
from dataclasses import asdict
from pathlib import Path

import pytest
import yaml
from sweep_cases import LAMBDA, ROOT

from rlanything.cli import main
from rlanything.config import load
from rlanything.core.errors import ConfigError
from rlanything.files.records import write_json
from rlanything.planning import compose
from rlanything.repro import rerun
from rlanything.runs import provenance
from rlanything.runs.fingerprint import made_from
from rlanything.runs.layout import Layout
from rlanything.runs.machine import cpu_model, machine
from rlanything.runs.resuming import began
from rlanything.stages import evaluate, train
from rlanything.sweep.declare.check import compose_base
from rlanything.sweep.declare.file import load_sweep
from rlanything.sweep.declare.sweep import hydra_overrides
from rlanything.sweep.trials.inputs import Inputs
from rlanything.sweep.trials.key import FILE, Key


@pytest.fixture
def project(tmp_path) -> Path:
    """A project with inputs, and a published sweep: trial 0 is finished, trial 1 crashed."""
    root = tmp_path / "project"
    root.mkdir()
    for name in ("envs", "experiments", "rlanything", "dvc.yaml"):
        (root / name).symlink_to(ROOT / name)
    compose.write(root / "params.yaml", (), root)
    write_json(root / "data" / "tasks" / "manifest.json", {})
    write_json(root / "models" / "bootstrap.json", {})
    published = root / "sweeps" / "case"
    published.mkdir(parents=True)
    (published / "sweep.yaml").write_text(yaml.safe_dump({"space": {"signals.lambda": LAMBDA}}))
    sweep = load_sweep(published / "sweep.yaml")
    for number, value in ((0, 1.0), (1, 0.5)):
        folder = published / "trials" / f"{number:04d}"
        folder.mkdir(parents=True)
        compose.write(folder / "params.yaml", hydra_overrides(sweep, {"signals.lambda": value}, 3), root)
    write_json(published / "trials" / "0000" / "evaluation" / "full.json", {"arm": "full", "seeds": {}})
    write_json(published / FILE, asdict(key(root)))
    return root


def key(root: Path) -> Key:
    sweep = load_sweep(root / "sweeps" / "case" / "sweep.yaml")
    inputs = Inputs.of(root, root / "params.yaml", root / ".rla")
    return Key.of(sweep.arms, compose_base(sweep, root), inputs)


def again(
    root: Path, name: object, output: Path | None, said: list[str] | None = None, *, anyway: bool = False
) -> rerun.Outcome:
    words: list[str] = [] if said is None else said
    name = None if name is None else str(name)
    return rerun.rerun_trial(
        Path("case.yaml"), root, root / "params.yaml", name, output, words.append, anyway=anyway
    )


@pytest.mark.parametrize(
    ("number", "expected"),
    [
        (7, "--rerun 7: .* has no such trial; known: 0, 1"),
        (1, "crashed or was pruned"),
        (None, "go together"),
        ("fresh/0", "--rerun fresh/0: .* has no such trial; known: 0, 1"),
        ("fresh", "--rerun fresh: give the number of a trial, e.g. 3, or fresh/3"),
    ],
)
def test_a_trial_without_a_result_is_not_run_again(project, tmp_path, number, expected):
    with pytest.raises(ConfigError, match=expected):
        again(project, number, tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("there", [True, False])
def test_what_else_is_in_the_folder_of_trials_is_none(project, tmp_path, there):
    trials = project / "sweeps" / "case" / "trials"
    (trials / ".DS_Store").write_text("")
    if not there:
        shutil.rmtree(trials)
    with pytest.raises(ConfigError, match=rf"no such trial; known: {'0, 1' if there else 'none'}"):
        again(project, 7, tmp_path / "out")


def test_a_sweep_that_is_not_published_is_said_to_be_run_first(project, tmp_path):
    with pytest.raises(ConfigError, match=r"run it first: rlanything sweep other\.yaml"):
        rerun.rerun_trial(Path("other.yaml"), project, project / "params.yaml", "0", tmp_path / "out", print)


def test_other_base_models_are_refused_before_any_work(project, tmp_path):
    write_json(project / "models" / "bootstrap.json", {"another": 1})
    with pytest.raises(
        ConfigError, match=r"not those of the sweep \(models/bootstrap.json: another content\)"
    ):
        again(project, 0, tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("output", ["", "sweeps/case/trials/0000", "params.yaml"])
def test_a_folder_that_holds_something_else_is_left_alone(project, output):
    with pytest.raises(ConfigError, match="holds something else"):
        again(project, 0, project / output)
    assert not list(project.rglob("rerun.json"))


def test_what_has_changed_since_is_said_and_the_trial_is_trained_from_its_own_params(
    project, tmp_path, monkeypatch
):
    """Without the training: what it is given, and where."""
    given = []
    monkeypatch.setattr(train, "train_arm", lambda *words: given.append(words))
    monkeypatch.setattr(evaluate, "evaluate_arm", lambda *words: given.append(words))
    path = project / "sweeps" / "case" / FILE
    data = json.loads(path.read_text())
    changed = next(name for name in data["files"] if name.startswith("rlanything/loop"))
    data["files"][changed] = "0" * 64
    write_json(path, data)
    said: list[str] = []
    again(project, 0, tmp_path / "out", said)
    assert said[0] == f"since the sweep: {changed}: another content"
    assert "provenance was not published" in said[1]
    assert [(config.signals.lambda_, root, arm) for config, root, arm in given] == [
        (1.0, tmp_path / "out", "full")
    ] * 2
    assert (tmp_path / "out" / "models" / "bootstrap.json").samefile(project / "models" / "bootstrap.json")
    write_json(project / "sweeps" / "case" / "trials" / "0001" / "evaluation" / "full.json", {})
    with pytest.raises(ConfigError, match="holds something else"):
        again(project, 1, tmp_path / "out")


@pytest.mark.parametrize("changing", ["train", "evaluate"])
def test_what_a_stage_made_while_a_prompt_changed_is_removed_and_the_same_command_goes_on_without_the_change(
    project, tmp_path, monkeypatch, changing
):
    (project / "experiments").unlink()
    shutil.copytree(ROOT / "experiments", project / "experiments")
    prompt, ran = project / "experiments" / "prompts" / "embedded" / "judge.txt", []
    before, output = prompt.read_text(), tmp_path / "out"
    monkeypatch.setattr(began, "check_began", lambda *_: None)  # the record below says nothing

    def stage(name: str, change: bool):
        def work(config, root: Path, arm: str) -> None:
            ran.append(name)
            if change and name == changing:
                prompt.write_text("another\n")
            made = {
                "train": [f"runs/{arm}/seed-{seed}/x" for seed in range(config.train.seeds)]
                + [f"provenance/{arm}.json"],
                "evaluate": [f"evaluation/{arm}.json"],
            }[name]
            for path in made:
                write_json(root / path, {"arm": arm, "seeds": {}})

        return work

    def stages(change: bool) -> None:
        monkeypatch.setattr(train, "train_arm", stage("train", change))
        monkeypatch.setattr(evaluate, "evaluate_arm", stage("evaluate", change))

    stages(change=True)
    with pytest.raises(
        ConfigError, match=rf"changed while {changing} --arm full ran .*/judge\.txt: another content"
    ):
        again(project, 0, output)
    assert not (output / "evaluation" / "full.json").exists()
    assert (output / "runs" / "full").exists() == (changing == "evaluate")
    prompt.write_text(before)
    ran.clear()
    stages(change=False)
    again(project, 0, output)
    assert ran == (["train", "evaluate"] if changing == "train" else ["evaluate"])


@pytest.fixture
def stages(monkeypatch) -> list[str]:
    """The names of the stages that are run; they do nothing."""
    given: list[str] = []
    monkeypatch.setattr(train, "train_arm", lambda *words: given.append("train"))
    monkeypatch.setattr(evaluate, "evaluate_arm", lambda *words: given.append("evaluate"))
    return given


def record(root: Path, place: str, *, cpu: str = "another processor") -> None:
    """Publish the provenance of a trial's run from the inputs that the project has now."""
    folder = root / "sweeps" / "case" / place
    config = load(folder / "params.yaml")
    run = Layout(root).run("full", 0)
    start = {
        "at": "", "command": "", "git": None, "packages": {}, "published": {}, "machine": {**machine(), "cpu": cpu},
    }  # fmt: skip
    run.mkdir(parents=True, exist_ok=True)
    write_json(root / "live" / "starts.json", [start])
    provenance.write(config, root, "full", made_from(config, root, "full"), root / "live")
    shutil.copytree(root / "provenance", folder / "provenance")


def test_base_models_that_came_out_otherwise_are_said_before_the_training(project, tmp_path, stages):
    """The sweep made its own, so its key has none; another kind of processor makes others."""
    record(project, "trials/0000")
    write_json(project / "sweeps" / "case" / FILE, {**asdict(key(project)), "inputs": {}})
    assert again(project, 0, tmp_path / "same").trained
    assert stages == ["train", "evaluate"]
    stages.clear()
    write_json(project / "models" / "bootstrap.json", {"another": 1})
    outcome = again(project, 0, tmp_path / "out")
    assert not outcome.same
    assert stages == []
    assert "the base models came out otherwise here" in outcome.text
    assert "models/bootstrap.json: " in outcome.text
    assert "was trained on another processor" in outcome.text
    assert f"this is {cpu_model()}" in outcome.text
    asked = again(project, 0, tmp_path / "out", anyway=True)
    assert stages == ["train", "evaluate"]
    assert asked.inputs == outcome.inputs


def test_a_trial_is_run_again_on_fresh_seeds(project, tmp_path, stages):
    there = project / "sweeps" / "case" / "fresh" / "0000"
    shutil.copytree(project / "sweeps" / "case" / "trials" / "0000", there)
    compose.write(there / "params.yaml", ["train.seeds=5"], project)
    record(project, "fresh/0000")
    outcome = again(project, "fresh/0", tmp_path / "out")
    assert load(tmp_path / "out" / "params.yaml").train.seeds == 5
    assert stages == ["train", "evaluate"]
    assert "trial fresh/0" in outcome.text
    with pytest.raises(ConfigError, match="holds something else"):
        again(project, 0, tmp_path / "out")


def test_the_command_needs_both(project, capsys):
    assert main(["--root", str(project), "sweep", "case.yaml", "--output", "x"]) == 2
    assert "--rerun N and --output DIR go together" in capsys.readouterr().err
