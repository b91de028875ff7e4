"""Workers with real children: crashes, kills, two at once, and results that do not depend on any of it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import optuna
import pytest
import yaml
from optuna.storages import JournalStorage
from optuna.storages.journal import JournalFileBackend
from optuna.trial import FrozenTrial
from stage_cases import SMALL
from sweep_cases import ROOT, forked

from rlanything.cli import main
from rlanything.planning import compose
from rlanything.sweep import command

SEEDS = 1
OWN = ["train.iterations=2", "evaluate.every=1", "signals.lambda=0.5"]
"""A default that is another point than the paper's: each is a trial of its own."""
SPACE = {
    "signals.lambda": [0.25, 0.5, 1.0],
}


@pytest.fixture
def project(tmp_path, tiny_project) -> Path:
    """The tiny project, with a dvc.yaml, of which every sweep is its own."""
    root = tmp_path / "project"
    root.mkdir()
    for name in ("data", "models"):
        (root / name).symlink_to(tiny_project / name)
    for name in ("experiments", "envs", "dvc.yaml"):
        (root / name).symlink_to(ROOT / name)
    compose.write(root / "params.yaml", SMALL, root)
    return root


RUN = [sys.executable, "-m", "rlanything"]


def environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1"}


def write(root: Path, name: str = "case", **changes: object) -> Path:
    data = {
        "overrides": [*SMALL, *OWN], "seeds": SEEDS, "confirm": 0,
        "sampler": "grid", "space": SPACE, **changes,
    }  # fmt: skip
    path = root / f"{name}.yaml"
    path.write_text(yaml.safe_dump(data))
    return path


def start(root: Path, file: Path, *more: str) -> subprocess.Popen[str]:
    words = [*RUN, "--root", str(root), "sweep", str(file), "--workers", "1", *more]
    return subprocess.Popen(
        words, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )


def finish(worker: subprocess.Popen[str]) -> str:
    said, _ = worker.communicate(timeout=1000)
    assert worker.returncode == 0, said
    return said


def folder(root: Path) -> Path:
    return next((root / ".rla" / "sweeps").glob("case-*"))


def trials(study: Path) -> list[FrozenTrial]:
    storage = JournalStorage(JournalFileBackend(str(study / "study.journal")))
    (name,) = optuna.get_all_study_names(storage)
    return optuna.load_study(study_name=name, storage=storage).trials


def runs(study: Path) -> dict[str, bytes]:
    """What training made: metrics, buffers and weights of every trial."""
    kept = ("metrics.jsonl", "model.safetensors")
    return {
        str(p.relative_to(study)): p.read_bytes()
        for p in sorted((study / "trials").rglob("*"))
        if p.is_file()
        and ".rla" not in p.relative_to(study).parts
        and (p.name in kept or p.parent.name == "buffer")
    }


def wait_for(root: Path, pattern: str, worker: subprocess.Popen[str]) -> None:
    deadline = time.monotonic() + 600
    while not list(root.glob(pattern)):
        assert worker.poll() is None, worker.communicate()[0]
        assert time.monotonic() < deadline
        time.sleep(0.02)


@pytest.mark.long
@pytest.mark.integration
def test_three_crashes_alike_end_the_sweep_with_their_error(project, capfd):
    """Every trial asks for two devices and is given one process."""
    file = write(project, overrides=[*SMALL, *OWN, "train.devices=2"])
    assert main(["--root", str(project), "sweep", str(file), "--workers", "1"]) == 2
    said = capfd.readouterr().err
    assert "trials 0, 1, 2 crashed with the same error" in said
    assert "train.devices = 2, but 1 process(es) were started here" in said
    found = trials(folder(project))
    assert [t.state.name for t in found] == ["FAIL"] * 3
    assert all("train.devices = 2" in t.user_attrs["error"] for t in found)
    assert "rlanything" in (folder(project) / "trials" / "0001" / "log.txt").read_text()
    published = project / "sweeps" / "case"
    assert "No trial has a result." in (published / "report.md").read_text()
    assert "1 process(es) were started here" in (published / "trials" / "0001" / "log.txt").read_text()


@pytest.mark.integration
def test_a_full_disk_is_no_trials_fault(project, monkeypatch):
    monkeypatch.setattr("rlanything.sweep.trials.worker.LEAST_FREE", 2**60)
    with pytest.raises(OSError, match="No space left on device"):
        command.run_sweep(write(project), project, project / "params.yaml", command.Options(workers=1))
    assert [t.state.name for t in trials(folder(project))] == ["WAITING"] * 3


@pytest.mark.slow
@pytest.mark.integration
def test_killed_workers_lose_nothing_and_two_at_once_share(project, tmp_path):
    """One undisturbed sweep; and one whose worker is killed in the middle of a trial, finished by two others."""
    file = write(project)
    finish(start(project, file))
    calm = folder(project)
    expected, values = runs(calm), [t.values for t in trials(calm)]
    assert len(expected) > 10
    calm.rename(tmp_path / "calm")

    first = start(project, file)
    wait_for(project, ".rla/sweeps/case-*/trials/0000/.rla/live/*/full/seed-0/iterations/0000", first)
    first.send_signal(signal.SIGKILL)
    first.wait()
    said = [finish(worker) for worker in [start(project, file) for _ in range(2)]]
    assert sum("trial 0: taken over" in text for text in said) == 1
    assert "resuming after iteration" in (folder(project) / "trials" / "0000" / "log.txt").read_text()
    assert sorted(n for text in said for n in (1, 2) if f"trial {n}: in_domain" in text) == [1, 2]
    assert [t.values for t in trials(folder(project))] == values
    assert runs(folder(project)) == expected

    again = finish(start(project, file))
    assert "taken over" not in again
    assert "trial 0" not in again
    assert (project / "sweeps" / "case" / "page.html").is_file()
    compare = [*RUN, "--root", str(project), "buffer", "diff", *(
        f"sweeps/case/trials/000{n}/runs/full/seed-0" for n in (0, 1)
    )]  # fmt: skip
    diff = subprocess.run(compare, env=environment(), capture_output=True, text=True, check=False)
    assert diff.returncode == 0, diff.stderr


@pytest.mark.slow
@pytest.mark.integration
def test_trials_share_their_base_models_and_the_winner_meets_fresh_seeds(project):
    """judge.m changes what the base models depend on: two bootstraps for three trials, none for the project's m."""
    file = write(project, space={"judge.m": [2, 3], "signals.lambda": [0.5]}, seeds=2, confirm=1)
    said = finish(start(project, file))
    study = folder(project)
    made = [p.name for p in (project / ".rla" / "sweeps" / "inputs").iterdir()]
    assert len(made) == 1
    links = {n: os.readlink(study / "trials" / f"000{n}" / "models") for n in (0, 1, 2)}
    assert links[0] == links[1]
    assert made[0] in links[2]
    assert "again, with 1 fresh seeds" in said
    for fresh in (study / "fresh").iterdir():
        log = (fresh / "log.txt").read_text()
        assert "full seed 2" in log
        assert "full seed 0" not in log
        assert "full seed 1" not in log
    published = json.loads((project / "sweeps" / "case" / "fresh.json").read_text())
    assert all({"lead", "fresh", "luck"} <= set(row) for row in published["leads"])
    assert {row["trial"] for row in published["means"]} == {int(p.name) for p in (study / "fresh").iterdir()}


@pytest.mark.slow
@pytest.mark.integration
def test_more_fresh_seeds_are_trained_beside_those_that_are_there(project):
    space = {"signals.lambda": [0.5, 1.0]}
    assert "again, with 1 fresh seeds" in finish(start(project, write(project, space=space, confirm=1)))
    said = finish(start(project, write(project, space=space, confirm=2)))
    assert "again, with 2 fresh seeds" in said
    assert "trial 0 (paper)" not in said
    for fresh in (folder(project) / "fresh").iterdir():
        evaluation = json.loads((fresh / "evaluation" / "full.json").read_text())
        assert sorted(evaluation["seeds"]) == ["0", "1", "2"]
        log = (fresh / "log.txt").read_text()
        assert log.count("full seed 1: iteration 0") == log.count("full seed 2: iteration 0") == 1
        assert "full seed 0" not in log


@pytest.mark.slow
@pytest.mark.integration
def test_with_more_seeds_only_those_are_trained_that_are_missing(project):
    space = {"signals.lambda": [0.5, 1.0]}
    finish(start(project, write(project, space=space, confirm=2)))
    before = folder(project)
    said = finish(start(project, write(project, space=space, seeds=2, confirm=1)))
    assert f"{before} has trials of 1 seed: its points" in said
    (study,) = (p for p in before.parent.glob("case-*") if p != before)
    for place in (study / "trials").iterdir():
        evaluation = json.loads((place / "evaluation" / "full.json").read_text())
        assert sorted(evaluation["seeds"]) == ["0", "1"]
        log = (place / "log.txt").read_text()
        assert "full seed 0" not in log
        assert "full seed 1" not in log, "it was trained as a fresh seed"
    for fresh in (study / "fresh").iterdir():
        assert "full seed" not in (fresh / "log.txt").read_text(), "all its seeds were there"
    kept = "runs/full/seed-0/metrics.jsonl"
    assert (study / "trials/0000" / kept).read_bytes() == (before / "trials/0000" / kept).read_bytes()


@pytest.mark.slow
@pytest.mark.integration
def test_a_point_that_is_being_run_is_waited_for(project):
    """Two at once: trials 1, 2 and 3 are one point, of which the one that came first is trained."""
    file = write(project, sampler="random", space={"judge.m": [3]}, budget={"trials": 4})
    said = finish(start(project, file, "--workers", "2"))
    study = folder(project)
    assert [t.user_attrs.get("same_as") for t in trials(study)] == [None, None, 1, 1]
    assert [n for n in range(4) if (study / "trials" / f"000{n}" / "log.txt").is_file()] == [0, 1]
    assert "trial 3: the same point as trial 1" in said
    published = project / "sweeps" / "case" / "trials"
    assert (published / "0003" / "evaluation" / "full.json").is_file()


@pytest.mark.slow
@pytest.mark.integration
def test_a_trial_is_run_again_in_a_folder_of_its_own(project, tmp_path):
    """Trial 2 sets judge.m, on which the base models depend: it must not get the project's."""
    file = write(project, space={"judge.m": [2]})
    finish(start(project, file))
    before = {p: p.stat().st_mtime_ns for p in project.rglob("*") if p.is_file() and ".rla" not in p.parts}
    words = [
        *RUN,
        "--root",
        str(project),
        "sweep",
        str(file),
        "--rerun",
        "2",
        "--output",
        str(tmp_path / "again"),
    ]
    done = [
        subprocess.run(words, env=environment(), capture_output=True, text=True, check=False)
        for _ in range(2)
    ]
    assert [d.returncode for d in done] == [0, 0], done[0].stderr
    assert "every published file came out with the same bytes" in done[0].stdout
    assert "iteration" not in done[1].stderr  # all was there
    assert ".rla/sweeps/inputs/" in os.readlink(tmp_path / "again" / "models")
    kept = project / "sweeps" / "case" / "trials" / "0002"
    for name in ("evaluation/full.json", "runs/full/seed-0/metrics.jsonl"):
        assert (tmp_path / "again" / name).read_bytes() == (kept / name).read_bytes()
    after = {p: p.stat().st_mtime_ns for p in project.rglob("*") if p.is_file() and ".rla" not in p.parts}
    assert after == before

    (tmp_path / "again" / "evaluation" / "full.json").write_text("{}\n")
    other = subprocess.run(words, env=environment(), capture_output=True, text=True, check=False)
    assert other.returncode == 1
    assert "DIFFERS" in other.stdout
    assert "evaluation/full.json" in other.stdout
    assert "The trial was trained on " in other.stdout


@pytest.mark.slow
@pytest.mark.integration
def test_a_trial_that_is_worse_everywhere_is_pruned(project):
    """A policy that does not learn at all (learning rate next to nothing) is given up; the baselines never are."""
    file = write(
        project, sampler="random", budget={"trials": 6}, pruner={"kind": "median", "warmup": 1},
        space={"learn.policy.lr": {"low": 1e-12, "high": 1e-3, "log": True}},
    )  # fmt: skip
    finish(start(project, file))
    found = trials(folder(project))
    assert [t.state.name for t in found[:2]] == ["COMPLETE"] * 2
    assert {t.state.name for t in found} <= {"COMPLETE", "PRUNED"}
    points = SEEDS * 2  # an evaluation in each of two iterations
    complete = [t for t in found if t.state.name == "COMPLETE"]
    assert [sorted(t.intermediate_values) for t in complete] == [list(range(points))] * len(complete)
    assert all(t.intermediate_values for t in found)


@pytest.mark.slow
@pytest.mark.integration
def test_the_papers_protocol_takes_the_mean_of_the_last_evaluations_of_real_trials(
    project, capfd, monkeypatch
):
    """The project's own file, as small as it goes: one seed, two of its three points, the last three of four
    evaluations of the curve."""
    declared = yaml.safe_load((ROOT / "experiments" / "sweep" / "lambda_reward.yaml").read_text())
    declared["space"]["signals.reward_lambda"].remove(0.25)
    small = [*SMALL, "train.iterations=3", "evaluate.every=1", *declared.pop("overrides")]
    file = write(project, **{**declared, "overrides": small, "seeds": 1})
    monkeypatch.setattr("rlanything.sweep.trials.worker.start_command", forked)
    assert main(["--root", str(project), "sweep", str(file), "--workers", "1"]) == 0
    assert "trial 2" in capfd.readouterr().err
    study = folder(project)
    found = {t.number: t for t in trials(study)}
    assert [t.user_attrs["sets"]["signals.reward_lambda"] for t in found.values()] == [1.0, 1.0, 4.0]
    assert found[1].user_attrs["same_as"] == 0
    for number in (0, 2):
        place = study / "trials" / f"{number:04d}"
        rows = [json.loads(x) for x in (place / "runs/full/seed-0/metrics.jsonl").read_text().splitlines()]
        expected = [sum(row[f"panel/{m}"] for row in rows[-3:]) / 3 for m in declared["objectives"]]
        assert found[number].values == pytest.approx(expected)
        config = yaml.safe_load((place / "params.yaml").read_text())
        assert config["signals"]["lambda"] == 1.0
        assert config["signals"]["reward_lambda"] == found[number].user_attrs["sets"]["signals.reward_lambda"]
