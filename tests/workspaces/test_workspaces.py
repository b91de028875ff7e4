"""Trials never touch what is recorded, every command finds a workspace by name, and the list says what is in each."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from stage_cases import contents
from workspace_cases import TINY, run

from rlanything.buffer import TaskBuffer, write_snapshot
from rlanything.cli import main
from rlanything.config import load
from rlanything.core.errors import ConfigError
from rlanything.core.types import Task
from rlanything.planning import compose
from rlanything.sweep.trials import inputs
from rlanything.workspaces import listing, places, trial


@pytest.mark.long
@pytest.mark.integration
def test_a_trial_leaves_what_is_recorded_alone_and_shares_its_inputs(project, capsys):
    for words in (["tasks"], ["bootstrap"], ["train", "--arm", "outcome"]):
        assert run(project, *words) == 0
    before = {name: contents(project / name) for name in ("data", "models", "runs", "provenance")}
    params = (project / "params.yaml").read_text()
    bold = [*TINY, "learn.policy.lr=0.001"]
    assert run(project, "train", "--arm", "outcome", *bold) == 0
    assert {name: contents(project / name) for name in before} == before
    assert (project / "params.yaml").read_text() == params
    name = trial.trial_name(bold)
    assert f"rlanything --workspace {name} COMMAND" in capsys.readouterr().err
    place = project / ".rla" / name
    assert (place / "models").resolve() == project / "models", "equal inputs are not made again"
    rates = [
        json.loads((root / "provenance" / "outcome.json").read_text())["config"]["learn"]["policy"]["lr"]
        for root in (project, place)
    ]
    assert rates == [5e-4, 1e-3]
    assert run(project, "--workspace", name, "rollouts", "show", "outcome") == 0
    assert run(project, "--workspace", name, "replay", "outcome") == 0
    assert run(project, "--workspace", name, "bootstrap") == 2
    assert "would change another folder's results" in capsys.readouterr().err
    assert run(project, "ls", "--json") == 0
    rows = {row["workspace"]: row for row in json.loads(capsys.readouterr().out)}
    assert set(rows) == {".", name}
    assert rows[name]["overrides"] == bold
    assert rows[name]["finished"] == ["outcome"]


@pytest.mark.parametrize(("stage", "made"), [("tasks", ["tasks"]), ("bootstrap", ["tasks", "bootstrap"])])
def test_a_stage_with_overrides_makes_what_it_needs_and_no_more(project, monkeypatch, stage, made):
    """In one process where that is asked for."""
    ran = []
    monkeypatch.setattr(inputs, "run_command", lambda config, root, command: ran.append((*command, config)))
    words = [] if stage == "tasks" else ["--one-process"]
    assert run(project, stage, *words, *TINY, "seed=1", "train.workers=4", "executor=processes") == 0
    assert [name for name, _ in ran] == made
    for _, config in ran:
        alone = (config.train.workers, config.executor.form) == (1, "inline")
        assert alone == (stage == "bootstrap")


@pytest.mark.long
@pytest.mark.integration
def test_other_tasks_are_made_beside_the_project(project):
    other = [*TINY, "seed=1"]
    assert run(project, "tasks", *other) == 0
    assert run(project, "--workspace", "mine", "bootstrap", *other) == 0
    assert not (project / "data").exists()
    assert not (project / "models").exists()
    found = [project / ".rla" / name / "data" for name in (trial.trial_name(other), "mine")]
    assert found[0].resolve() == found[1].resolve()
    assert found[0].resolve().parent.parent == project / ".rla" / "inputs"
    assert (found[1] / "tasks" / "train.jsonl").is_file()


def test_what_the_configuration_names_in_the_project_is_there_in_a_trial(project, monkeypatch):
    """Tasks to start from, checkpoints and prompts, where the trial runs and where its inputs are made."""
    named = ["start/buffer/iter_0000.jsonl", "checkpoints/mine/config.json", "weights/judge/config.json"]
    for name in (*named, "runs/full/seed-0/config.json"):
        (project / name).parent.mkdir(parents=True, exist_ok=True)
        (project / name).write_text("{}")
    shutil.copytree(project / "experiments" / "prompts", project / "prompts")
    prompts = next((project / "prompts").glob("**/judge.txt")).parent.relative_to(project)
    overrides = [
        *TINY,
        *(f"tasks.start={named[0]}", "tasks.start_digest=" + "0" * 64),
        *("+evaluate.solver.path=./checkpoints/mine", f"+evaluate.solver.prompts={prompts}"),
        *("+evaluate.reward_policy.path=runs/full/seed-0", "evaluate.labels=judge"),
        *("+evaluate.judges.near.path=weights/judge", "+evaluate.judges.hub.path=weights/of-the-hub"),
    ]
    found = trial.prepare(project, project / "params.yaml", overrides)
    assert found.inputs != project
    for place in (found.root, found.inputs):
        assert all((place / name).is_file() for name in (*named, f"{prompts}/judge.txt"))
        assert not (place / "runs").exists(), "a trial has runs of its own"
        links = {path.name for path in place.iterdir() if path.is_symlink()} - {"data", "models"}
        assert links == {"experiments", "envs", "start", "checkpoints", "prompts", "weights"}


def test_a_dry_run_makes_no_workspace(project, capsys):
    assert run(project, "train", "--arm", "full", *TINY, "signals.lambda=0.5", "--dry-run", "--config") == 0
    assert "lambda: 0.5" in capsys.readouterr().out
    assert not (project / ".rla").exists()


def test_a_name_is_of_one_configuration(project, capsys):
    found = trial.prepare(project, project / "params.yaml", [*TINY, "seed=1"], "bold")
    assert found.root == project / ".rla" / "bold"
    again = trial.prepare(project, project / "params.yaml", [*TINY, "seed=1"], "bold")
    assert again == found
    with pytest.raises(ConfigError, match="this workspace has another configuration"):
        trial.prepare(project, project / "params.yaml", [*TINY, "seed=2"], "bold")
    for name in ("locks", "../x", "", "a b"):
        (project / ".rla" / "locks").mkdir(exist_ok=True)
        with pytest.raises(ConfigError, match="choose another name"):
            places.free(name, project)
    for name in ("live", "inputs", "sweeps", "checks", "timings", "livebench", "Logs", "vllm", "verifiers"):
        with pytest.raises(ConfigError, match="choose another name; the project keeps"):
            places.free(name, project)
    assert trial.trial_name(["a=1", "b=2"]) == trial.trial_name(["b=2", "a=1"])
    assert trial.trial_name(["a=1"]) != trial.trial_name(["a=2"])


def test_a_workspace_whose_making_was_killed_is_made_by_the_same_command(project, monkeypatch):
    words = [*TINY, "seed=1"]
    with monkeypatch.context() as killed:
        killed.setattr(compose, "write", lambda *_: pytest.fail("killed"))
        with pytest.raises(pytest.fail.Exception):
            trial.prepare(project, project / "params.yaml", words, "bold")
    assert (project / ".rla" / "bold" / "envs").is_symlink()
    found = trial.prepare(project, project / "params.yaml", words, "bold")
    assert load(found.root / "params.yaml") == found.config
    (project / ".rla" / "other").mkdir()
    (project / ".rla" / "other" / "mine.txt").touch()
    with pytest.raises(ConfigError, match=r"choose another name; .*/other is no workspace"):
        trial.prepare(project, project / "params.yaml", words, "other")


def test_an_unknown_workspace_names_the_nearest(project, capsys):
    assert run(project, "--workspace", "smoke", "buffer", "ls") == 2
    assert "workspace 'smoke': this project has none yet" in capsys.readouterr().err
    (project / ".rla" / "smoke").mkdir(parents=True)
    shutil.copyfile(project / "params.yaml", project / ".rla" / "smoke" / "params.yaml")
    assert run(project, "--workspace", "smok", "buffer", "ls") == 2
    assert "did you mean 'smoke'?" in capsys.readouterr().err


@pytest.mark.parametrize(
    "words", [("rollouts", "show", "full"), ("buffer", "ls"), ("buffer", "diff", "full/seed-0")]
)
def test_where_the_project_has_no_run_its_workspaces_are_named(tmp_path, capsys, words):
    (tmp_path / ".rla" / "smoke").mkdir(parents=True)
    (tmp_path / ".rla" / "smoke" / "params.yaml").touch()
    assert run(tmp_path, *words) == 2
    said = capsys.readouterr().err
    assert said.endswith(". A workspace has runs of its own (`rlanything --workspace NAME COMMAND`): smoke\n")
    assert run(tmp_path, "--workspace", "smoke", *words) == 2
    assert "has runs of its own" not in capsys.readouterr().err


def test_a_buffer_is_exported_into_the_workspace_and_the_place_is_printed(tmp_path, capsys):
    place = tmp_path / ".rla" / "bold"
    write_snapshot(
        TaskBuffer.start([Task("toy", "do it", {}, {})]), place / "runs/full/seed-0/buffer/iter_0000.jsonl"
    )
    (place / "params.yaml").touch()
    assert run(tmp_path, "--workspace", "bold", "buffer", "export", "full/seed-0", "tasks.jsonl") == 0
    assert capsys.readouterr().out == f"wrote 1 slots to {place / 'tasks.jsonl'}\n"
    assert run(tmp_path, "--workspace", "bold", "buffer", "import", "tasks.jsonl", "start") == 0
    said = capsys.readouterr().out
    assert said.startswith(f"{place / 'start'} starts with 1 slots")
    assert "rlanything --workspace bold config write tasks.train=1 tasks.start=start/buffer/" in said


def test_a_bad_override_makes_nothing(project, capsys):
    assert run(project, "train", "--arm", "full", "signal.lambda=1") == 2
    assert "did you mean 'signals.lambda'?" in capsys.readouterr().err
    assert run(project, "train", "--arm", "ful", "signals.lambda=1") == 2
    assert "did you mean 'full'?" in capsys.readouterr().err
    assert not (project / ".rla").exists()


def test_the_project_is_found_from_its_folders(project, monkeypatch, capsys):
    inside = project / "notes" / "deep"
    inside.mkdir(parents=True)
    monkeypatch.chdir(inside)
    assert main(["config", "check"]) == 0
    assert f"{project}/params.yaml: valid" in capsys.readouterr().out
    assert places.project(project) == project
    monkeypatch.chdir(project)
    assert places.project(Path()) == Path()


def test_a_root_that_is_not_there_is_no_empty_project(tmp_path, capsys):
    (tmp_path / "file").touch()
    for name in ("nowhere", "file"):
        for words in (["ls"], ["watch", "--once"], ["buffer", "ls"]):
            assert main(["--root", str(tmp_path / name), *words]) == 2
            assert capsys.readouterr().err == f"rlanything: --root {tmp_path / name}: no such folder\n"


def test_a_folder_that_is_no_project_has_no_list(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    for words in (["ls"], ["--root", str(tmp_path), "ls"]):
        assert main(words) == 2
        said = capsys.readouterr()
        assert said.out == ""
        assert f"{tmp_path}: no project here or above, which has a params.yaml" in said.err


def test_a_training_whose_folder_is_being_removed_is_not_listed(tmp_path):
    for key in ("0123abcd", ".gone-4567cdef"):
        (tmp_path / ".rla" / "live" / key / f"of-{key[-4:]}" / "seed-0").mkdir(parents=True)
    assert listing.page(tmp_path)[0]["training"] == ["of-abcd"]


def test_the_list_survives_a_file_that_no_program_wrote(project, capsys):
    folder = project / ".rla" / "odd"
    folder.mkdir(parents=True)
    (folder / "params.yaml").write_bytes(b"\xff\xfe")
    assert listing.overrides(folder / "params.yaml") == []
    quoted = project / ".rla" / "quoted"
    quoted.mkdir()
    (quoted / "params.yaml").write_text("#     rlanything config write 'seed=1\n")
    assert listing.overrides(quoted / "params.yaml") == []
    assert run(project, "ls") == 0
    assert "\nodd " in capsys.readouterr().out


def test_the_report_names_the_workspace_in_its_hints(project):
    from io import StringIO

    from rich.console import Console

    from rlanything.stages import report

    said = {}
    for root in (project, project / ".rla" / "coding-smoke"):
        shown = StringIO()
        report._paths(Console(file=shown, width=200), root, "runs/full/seed-0")
        said[root] = shown.getvalue()
    first, second = said.values()
    assert "show it: rlanything buffer ls runs/full/seed-0\n" in first
    assert "Report: .rla/coding-smoke/report/report.md" in second
    assert "show it: rlanything --workspace coding-smoke buffer ls runs/full/seed-0\n" in second
