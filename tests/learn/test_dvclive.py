"""The metrics of a finished run as DVCLive would write them, wherever the project lies."""

from __future__ import annotations

import subprocess

from dvclive import Live
from stage_cases import contents

from rlanything.learn.callbacks import write_dvclive

ROWS = [
    {"iteration": 0, "accuracy": 0.5, "panel/in_domain": 1 / 3, "accepted_total": 0, "mu": None},
    {"iteration": 1, "accuracy": 1e-07, "accepted_total": 3, "mu": 1.25},
    {"iteration": 2, "panel/in_domain": 1.0, "panel/rm/outcome": 0.1, "accepted_total": 3},
]


def test_the_files_are_those_that_dvclive_writes(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with Live("theirs", save_dvc_exp=False, report=None, dvcyaml=None, monitor_system=False) as live:
        for row in ROWS:
            live.step = row["iteration"]
            for name, value in row.items():
                if name != "iteration" and value is not None:
                    live.log_metric(name, value)
            live.make_summary()
    write_dvclive(tmp_path / "ours", ROWS)
    assert contents(tmp_path / "ours") == contents(tmp_path / "theirs")


def test_a_repository_without_a_commit_is_no_obstacle_and_is_left_as_it_is(tmp_path, monkeypatch):
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    monkeypatch.chdir(tmp_path)
    before = {path.name for path in tmp_path.iterdir()}
    write_dvclive(tmp_path / "ours", ROWS)
    assert {path.name for path in tmp_path.iterdir()} == before | {"ours"}
