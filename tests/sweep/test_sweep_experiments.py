"""Trials as DVC experiments: DVC lists them with their parameters and metrics, and nothing else changes."""

from __future__ import annotations

import csv
import io
import os
import shutil
import subprocess
import sys

import pytest
import yaml
from sweep_cases import ROOT, declared, make, play

from rlanything.core.errors import ConfigError
from rlanything.sweep import command
from rlanything.sweep.results.experiments import record


@pytest.fixture
def project(tmp_path):
    root = tmp_path / "project"
    (root / "report").mkdir(parents=True)
    shutil.copyfile(ROOT / "params.yaml", root / "params.yaml")
    (root / "report" / "headline.json").write_text("{}")
    (root / "dvc.yaml").write_text("metrics: [report/headline.json]\nparams: [params.yaml]\n")
    for line in (
        "git init -q",
        "dvc init -q",
        "git add -A",
        "git -c user.name=a -c user.email=a@b commit -qm first",
    ):
        run(root, *line.split())
    return root


def run(root, *words: str) -> str:
    program = [sys.executable, "-m", "dvc"] if words[0] == "dvc" else [words[0]]
    env = {**os.environ, "DVC_NO_ANALYTICS": "1"}
    done = subprocess.run(
        [*program, *words[1:]], cwd=root, env=env, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.long
@pytest.mark.integration
def test_dvc_shows_every_trial_and_the_workspace_stays(project, tmp_path):
    board = make(declared(budget={"trials": 3}, confirm=0), tmp_path / "study")
    play(board)
    for trial in board.complete():
        config = yaml.safe_load((ROOT / "params.yaml").read_text())
        config["signals"]["lambda"] = board.sets(trial.number)["signals.lambda"]
        (board.results(trial.number) / "params.yaml").write_text(yaml.safe_dump(config))
    said: list[str] = []
    for _ in range(2):  # again: the same names, nothing twice
        record(board, "case", project, said.append)
    assert said == ["3 experiments recorded: dvc exp show"] * 2
    assert run(project, "git", "status", "--porcelain") == ""
    rows = {
        row["Experiment"]: row
        for row in csv.DictReader(io.StringIO(run(project, "dvc", "exp", "show", "--csv")))
    }
    for trial in board.complete():
        row = rows[f"case-{trial.number:04d}"]
        assert float(row["signals.lambda"]) == board.sets(trial.number)["signals.lambda"]
        assert float(row["full.in_domain"]) == pytest.approx(trial.values[0], abs=1e-4)


def test_without_git_nothing_is_trained(tmp_path):
    options = command.Options(folder=tmp_path / "sweeps", experiments=True)
    file = ROOT / "experiments" / "sweep" / "lambda.yaml"
    with pytest.raises(ConfigError, match="experiments cannot be recorded: git rev-parse"):
        command.run_sweep(file, tmp_path, ROOT / "params.yaml", options)
    assert not (tmp_path / "sweeps").exists()


def test_without_git_the_reason_is_said(tmp_path):
    board = make(declared(budget={"trials": 2}, confirm=0), tmp_path / "study")
    with pytest.raises(ConfigError, match="experiments cannot be recorded: git rev-parse"):
        record(board, "case", tmp_path, print)
