"""Trials as DVC experiments: DVC lists them with their parameters and metrics, and nothing else changes."""

from __future__ import annotations

import csv
import io
import json
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
from rlanything.sweep.trials.board import Board

OF_HEAD = (
    "provenance/full.json", "provenance/policy.json", "report/coding/report.md", "report/buffers/page.html",
    "report/figures/gains.svg", "report/plots/learning.csv", "report/report.md", "report/summary.json",
)  # fmt: skip
KEPT = {"report/coding/report.md"}
"""Which of them no stage writes: another project's report."""


@pytest.fixture
def project(tmp_path):
    root = tmp_path / "project"
    (root / "report").mkdir(parents=True)
    shutil.copyfile(ROOT / "params.yaml", root / "params.yaml")
    (root / "report" / "headline.json").write_text("{}")
    for file in OF_HEAD:
        (root / file).parent.mkdir(parents=True, exist_ok=True)
        (root / file).write_text("of HEAD")
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


def played(folder) -> Board:
    """Three trials with whole configurations."""
    board = make(declared(budget={"trials": 3}, confirm=0), folder)
    play(board)
    for trial in board.complete():
        config = yaml.safe_load((ROOT / "params.yaml").read_text())
        config["signals"]["lambda"] = board.sets(trial.number)["signals.lambda"]
        (board.results(trial.number) / "params.yaml").write_text(yaml.safe_dump(config))
    return board


@pytest.mark.integration
def test_an_experiment_has_the_trials_curves_and_nothing_that_the_commits_stages_wrote(project, tmp_path):
    board = played(tmp_path / "study")
    for number in range(3):
        line = {"iteration": 0, "panel/in_domain": 0.25 * number, "votes": 20.0}
        for seed in board.results(number).glob("runs/full/*"):
            (seed / "metrics.jsonl").write_text(json.dumps(line) + "\n")
    record_of_arm = board.results(2) / "provenance" / "full.json"
    record_of_arm.parent.mkdir()
    record_of_arm.write_text("of trial 2")
    record(board, "case", project, lambda _: None)
    refs = run(project, "git", "for-each-ref", "--format=%(refname)", "refs/exps").split()
    assert [ref.rpartition("/")[2] for ref in refs] == ["case-0000", "case-0001", "case-0002"]
    for number, ref in enumerate(refs):

        def show(file: str, ref: str = ref) -> str:
            return run(project, "git", "show", f"{ref}:{file}")

        files = set(run(project, "git", "ls-tree", "-r", "--name-only", ref).split())
        assert {file for file in files if show(file) == "of HEAD"} == KEPT
        assert ("provenance/full.json" in files) == (number == 2)
        curves = list(csv.DictReader(io.StringIO(show("report/plots/learning.csv"))))
        shares = {float(row["value"]) for row in curves if row["metric"] == "in_domain"}
        assert shares == {0.25 * number}
        assert f"Trial {number} of sweep case" in show("report/report.md")


@pytest.mark.long
@pytest.mark.integration
def test_dvc_shows_every_trial_and_the_workspace_stays(project, tmp_path):
    board = played(tmp_path / "study")
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
