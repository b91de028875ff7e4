"""What a workspace reads of another folder stays what its runs were made from, or its commands refuse."""

from __future__ import annotations

import json
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest
from stage_cases import ROOT
from workspace_cases import TINY, run

from rlanything.cli import main
from rlanything.core.errors import ConfigError
from rlanything.files.records import write_json
from rlanything.planning import compose
from rlanything.runs import provenance
from rlanything.runs.layout import Layout
from rlanything.stages import measured
from rlanything.sweep.trials import inputs
from rlanything.sweep.trials.inputs import MADE, SOURCES, link
from rlanything.workspaces import linked, trial

BOLD = [*TINY, "learn.policy.lr=0.001"]


@pytest.mark.long
@pytest.mark.integration
def test_a_trial_is_not_measured_on_tasks_that_the_project_made_since(project, capsys):
    for words in (["tasks"], ["bootstrap"], ["train", "--arm", "outcome", *BOLD]):
        assert run(project, *words) == 0
    name = trial.trial_name(BOLD)
    panel = (project / ".rla" / name / "data" / "tasks" / "in_domain.jsonl").read_bytes()
    compose.write(project / "params.yaml", [*TINY, "seed=1"], project)
    for words in (["tasks"], ["bootstrap"]):
        assert run(project, *words) == 0
    measure = ["evaluate", "--arm", "outcome"]
    for words in (measure, ["evaluate", "--arm", "base"], ["train", "--arm", "full"]):
        capsys.readouterr()
        assert run(project, "--workspace", name, *words) == 2
        said = capsys.readouterr().err
        assert "made under other settings (here -> there: seed: 0 -> 1)" in said
        assert f"`rlanything --workspace {name} {' '.join(words)} scale=smoke tasks.train=3 " in said
    assert not (project / ".rla" / name / "evaluation").exists()
    assert run(project, *measure, *BOLD) == 0
    assert (project / ".rla" / name / "data").resolve().parent.parent == project / ".rla" / "inputs"
    assert (project / ".rla" / name / "data" / "tasks" / "in_domain.jsonl").read_bytes() == panel


@pytest.mark.long
@pytest.mark.integration
def test_tasks_that_changed_under_the_same_settings_are_found_by_their_bytes(project, capsys):
    for words in (["tasks"], ["bootstrap"], ["train", "--arm", "outcome", *BOLD]):
        assert run(project, *words) == 0
    name = trial.trial_name(BOLD)
    panel = project / "data" / "tasks" / "in_domain.jsonl"
    panel.write_text(panel.read_text() + "\n")
    for words in (
        ["--workspace", name, "evaluate", "--arm", "outcome"],
        ["evaluate", "--arm", "base", *BOLD],
    ):
        capsys.readouterr()
        assert run(project, *words) == 2
        said = capsys.readouterr().err
        assert "arm outcome was trained with other tasks or base models" in said
        assert "data/tasks/in_domain.jsonl: " in said


@pytest.mark.parametrize("elsewhere", [False, True])
def test_a_trial_refuses_the_projects_new_tasks_also_where_these_lie_on_another_disk(
    project, tmp_path_factory, elsewhere
):
    disk = tmp_path_factory.mktemp("disk")
    for name in MADE if elsewhere else ():
        (disk / name).mkdir()
        (project / name).symlink_to(disk / name)
    made(project)
    found = trial.prepare(project, project / "params.yaml", BOLD)
    assert found.inputs == project
    linked.check(found.root, project, found.config, "train", "full")
    compose.write(project / "params.yaml", [*TINY, "seed=1"], project)
    with pytest.raises(ConfigError, match=r"made under other settings \(here -> there: seed: 0 -> 1\)"):
        linked.check(found.root, project, found.config, "train", "full")


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("data/tasks", ["tasks"]),
        ("data/tasks", ["bootstrap"]),
        ("data/tasks", ["evaluate", "--arm", "base"]),
        ("models/policy", ["train", "--arm", "outcome"]),
        ("runs/outcome", ["train", "--arm", "outcome"]),
        ("runs/outcome/seed-0", ["train", "--arm", "outcome"]),
    ],
)
def test_a_folder_of_results_that_is_a_link_is_refused_before_any_work(project, capsys, name, words):
    """No hash would have its files. When a stage puts a new one in its place, the old one could not be removed."""
    for made in MADE:
        (project / made).mkdir()
    link, there = project / name, project / "disk"
    link.parent.mkdir(parents=True, exist_ok=True)
    there.mkdir()
    link.symlink_to(there)
    assert run(project, *words) == 2
    assert f"{name}: a link to {there}" in capsys.readouterr().err
    assert link.is_symlink()
    assert list(there.iterdir()) == []


def test_labels_that_are_a_link_are_refused_too(project):
    (project / "labels").symlink_to(project)
    with pytest.raises(ConfigError, match=f"labels: a link to {project}"):
        linked.require_folders(project, "label", "")
    linked.require_folders(project, "evaluate", "full")


def test_a_trial_refuses_such_a_link_of_the_project_too(project, capsys):
    for file in (Layout(project).manifest, Layout(project).bootstrap):
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("{}")
    (project / "models" / "policy").symlink_to(project)
    assert run(project, "evaluate", "--arm", "base", *BOLD) == 2
    assert f"models/policy: a link to {project}" in capsys.readouterr().err


def test_a_report_refuses_evaluations_with_tasks_or_models_that_the_other_folder_has_no_more(project):
    there, here = project / "there", project / "here"
    made(there)
    for place in (
        Layout(there).tasks("in_domain"),
        Layout(there).bootstrap.parent / "policy" / "source.json",
    ):
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text("{}")
    here.mkdir()
    for name in MADE:
        (here / name).symlink_to(there / name)
    for arm in ("base", "full"):
        write_json(Layout(here).evaluation(arm), {"arm": arm})
        begun = provenance.start(project, {}, {}, ())
        provenance.write_measured(here, arm, begun, measured.used(Layout(here)))
    linked.check_evaluations(here)
    Layout(there).tasks("in_domain").write_text("[]")
    with pytest.raises(
        ConfigError, match=r"base \(tasks\), full \(tasks\).*`rlanything evaluate --arm base`"
    ):
        linked.check_evaluations(here)
    Layout(there).tasks("in_domain").write_text("{}")
    (Layout(there).bootstrap.parent / "policy" / "source.json").write_text("[]")
    provenance.write_measured(here, "full", begun, measured.used(Layout(here)))
    with pytest.raises(ConfigError, match=r"has now: base \(base models\)\. "):
        linked.check_evaluations(here)
    Layout(there).bootstrap.unlink()  # not whole, so it says nothing of what was measured
    linked.check_evaluations(here)


def test_a_hidden_file_beside_the_tasks_is_none_of_what_an_evaluation_used(project):
    there = project / "there"
    made(there)
    for name in MADE:
        (project / name).symlink_to(there / name)
    before = measured.used(Layout(project))
    (there / "data" / "tasks" / ".DS_Store").write_text("")
    assert measured.used(Layout(project)) == before


def test_an_evaluation_in_a_folder_with_its_own_tasks_and_models_records_no_others(project):
    for name in MADE:
        (project / name).mkdir()
    assert measured.used(Layout(project)) == {}


def test_links_of_single_files_and_of_what_a_stage_only_reads_are_followed(project):
    """DVC's cache may be made of links."""
    (project / "models").mkdir()
    (project / "models" / "reward_panel.jsonl.gz").symlink_to(project / "params.yaml")
    (project / "runs").mkdir()
    (project / "runs" / "full").symlink_to(project / "models")
    linked.require_folders(project, "evaluate", "full")
    linked.require_folders(project, "train", "outcome")


def made(folder: Path) -> None:
    """Tasks and base models, as far as it is looked whether they are there."""
    layout = Layout(folder)
    for file in (layout.manifest, layout.bootstrap):
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("{}")


def test_a_workspace_that_got_other_values_refuses_the_inputs_of_its_former_ones(project, capsys):
    found = trial.prepare(project, project / "params.yaml", [*TINY, "seed=1"], "half")
    assert found.inputs.parent == project / ".rla" / "inputs"
    made(found.inputs)
    linked.check(found.root, project, found.config, "train", "full")
    assert run(project, "--workspace", "half", "config", "write", *TINY, "seed=5") == 0
    capsys.readouterr()
    assert run(project, "--workspace", "half", "train", "--arm", "full") == 2
    said = capsys.readouterr().err
    assert "made under other settings (here -> there: seed: 5 -> 1)" in said
    words = shlex.join([*TINY, "seed=5"])
    assert f"or makes them: `rlanything --workspace half train --arm full {words}`" in said
    again = trial.prepare(project, project / "params.yaml", [*TINY, "seed=5"], "half")
    linked.check(again.root, project, again.config, "train", "full")


def test_a_stage_that_would_change_linked_inputs_names_the_command_that_works(project, capsys, monkeypatch):
    words = [*TINY, "seed=1"]
    trial.prepare(project, project / "params.yaml", words, "half")
    for stage in ("tasks", "bootstrap"):
        capsys.readouterr()
        assert run(project, "--workspace", "half", stage) == 2
        said = capsys.readouterr().err
        assert "would change another folder's results" in said
        assert f"or makes them: `rlanything --workspace half {stage} {shlex.join(words)}`" in said
    ran = []
    monkeypatch.setattr(inputs, "run_command", lambda config, root, command: ran.append(command))
    assert run(project, "--workspace", "half", "bootstrap", *words) == 0
    assert ran == [("tasks",), ("bootstrap",)]


def test_overrides_name_one_workspace_in_any_order(project):
    words = [*TINY, "signals.lambda=0.5", "seed=1"]
    first = trial.prepare(project, project / "params.yaml", words)
    text = (first.root / "params.yaml").read_text()
    again = trial.prepare(project, project / "params.yaml", words[::-1])
    assert again == first
    assert (first.root / "params.yaml").read_text() == text
    with pytest.raises(ConfigError, match=r"another configuration \(seed: 1 -> 2; "):
        trial.prepare(project, project / "params.yaml", [*TINY, "signals.lambda=0.5", "seed=2"], first.name)


@pytest.mark.long
@pytest.mark.integration
def test_a_workspace_that_make_filled_takes_its_own_overrides(project, capsys):
    place = project / ".rla" / "smoke"
    place.mkdir(parents=True)
    for name in ("envs", "experiments"):
        shutil.copytree(ROOT / name, place / name)
    shutil.copyfile(ROOT / "dvc.yaml", place / "dvc.yaml")
    compose.write(place / "params.yaml", TINY, project)
    for stage in ("tasks", "bootstrap"):
        assert main(["--root", str(place), stage]) == 0
    assert run(project, "--workspace", "smoke", "evaluate", "--arm", "base", *TINY) == 0
    assert json.loads((place / "evaluation" / "base.json").read_text())["arm"] == "base"
    assert not any((place / name).is_symlink() for name in ("data", "models", "envs", "experiments"))
    assert run(project, "--workspace", "smoke", "evaluate", "--arm", "base", *TINY, "seed=1") == 2
    assert "this workspace has another configuration (seed: 0 -> 1; " in capsys.readouterr().err


def test_a_folder_is_never_taken_for_a_link(tmp_path):
    (tmp_path / "here" / "models").mkdir(parents=True)
    with pytest.raises(ConfigError, match="models: it is no link to"):
        link(tmp_path / "here", tmp_path / "there", ("data", "models"))
    assert not (tmp_path / "here" / "data").exists()


@pytest.mark.long
@pytest.mark.integration
def test_what_an_error_advises_works_as_it_stands(project, capsys):
    mine = project / ".rla" / "mine"
    mine.mkdir(parents=True)
    shutil.copyfile(project / "params.yaml", mine / "params.yaml")
    link(mine, project, SOURCES)
    there = ["--workspace", "mine"]
    for within, prefix in (([], "`rlanything "), (there, "`rlanything --workspace mine ")):
        for words, hint in (
            (["evaluate", "--arm", "full"], "bootstrap`"),
            (["buffer", "ls", "full/seed-0"], "train --arm full`"),
            (["replay", "full"], "train --arm full`"),
            (["provenance", "full"], "train --arm full`"),
            (["rollouts", "show", "full"], "train --arm full`"),
        ):
            assert run(project, *within, *words) == 2
            said = capsys.readouterr().err
            assert prefix + hint in said
            assert "known: \n" not in said
    assert run(project, "tasks", *TINY, "seed=1") == 0
    assert run(project, "bootstrap", *TINY, "seed=1") == 0
    capsys.readouterr()
    assert run(project, "evaluate", "--arm", "full", *TINY, "seed=1") == 2
    name = trial.trial_name([*TINY, "seed=1"])
    assert f"`rlanything --workspace {name} train --arm full scale=smoke " in capsys.readouterr().err


def test_a_run_that_no_revision_has_is_told_from_a_project_without_runs(project, capsys):
    for words in (["init", "-b", "main"], ["add", "params.yaml"], ["commit", "-m", "first"], ["tag", "v1"]):
        command = ["git", "-c", "user.name=a", "-c", "user.email=a@b", "-C", str(project), *words]
        subprocess.run(command, check=True, capture_output=True)
    assert run(project, "buffer", "ls", "full/seed-0") == 2
    said = capsys.readouterr().err
    assert (
        "no path, run or revision 'full/seed-0'; known: HEAD, main, v1; this project has no run yet" in said
    )
