"""A stage whose code, prompts or parameters change while it runs has failed: DVC would record them as its causes."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from stage_cases import ROOT
from workspace_cases import TINY, run

from rlanything.config import load
from rlanything.core.errors import ConfigError
from rlanything.files.yaml_file import read_mapping
from rlanything.planning import compose
from rlanything.stages import declared, report, tasks
from rlanything.sweep.trials import inputs
from rlanything.workspaces import trial
from rlanything.workspaces import unchanged as module
from rlanything.workspaces.unchanged import unchanged

STAGES = {stage.name: stage for stage in declared.STAGES}


def rewrite(path: Path, *overrides: str) -> None:
    compose.write(path, [*TINY, *overrides], path.parent)


@pytest.mark.parametrize(
    ("stage", "arm", "override", "named"),
    [
        ("tasks", "", "tasks.train=4", r"tasks\.train: 3 -> 4"),
        ("tasks", "", "signals.lambda=0.5", None),
        ("train", "full", "signals.lambda=0.5", r"signals\.lambda: 1\.0 -> 0\.5"),
        ("train", "outcome", "signals.lambda=0.5", None),
        ("train", "full", "arms.outcome.max_batches=2", None),
        ("train", "full", "arms.full.max_batches=2", r"arms\.full\.max_batches: 1 -> 2"),
        ("train", "full", "train.workers=1", None),
        ("evaluate", "full", "evaluate.repeats=7", r"evaluate\.repeats: \d -> 7"),
        ("bootstrap", "", "bootstrap.reward.steps=3", r"bootstrap\.reward\.steps: 2 -> 3"),
    ],
)
def test_a_parameter_of_the_stage_that_changes_meanwhile_is_named_and_others_do_not_matter(
    project, stage, arm, override, named
):
    params = project / "params.yaml"
    around = unchanged(STAGES[stage], load(params), project, arm, params)
    around.__enter__()
    rewrite(params, override)
    if named is None:
        around.__exit__(None, None, None)
    else:
        with pytest.raises(ConfigError, match=rf"changed while {stage} ran: {named}\. What it made may be"):
            around.__exit__(None, None, None)


@pytest.mark.parametrize("what", ["code", "prompt", "gone"])
def test_code_and_prompts_that_change_meanwhile_are_named(project, monkeypatch, what):
    (project / "experiments").unlink()
    shutil.copytree(ROOT / "experiments", project / "experiments")
    params = project / "params.yaml"
    config = load(params)
    code = project / "code.py"
    code.write_text("one\n")
    monkeypatch.setattr(module, "code_of", lambda stage, data: {"code.py": code})
    prompt = project / config.model.prompts / "judge.txt"
    named = {"code": r"code\.py: \w+ -> \w+", "prompt": r"judge\.txt: \w+ -> ", "gone": r"code\.py: gone"}[
        what
    ]

    def work() -> None:
        with unchanged(STAGES["evaluate"], config, project, "full", params):
            code.unlink() if what == "gone" else (code if what == "code" else prompt).write_text("another\n")

    with pytest.raises(ConfigError, match=named):
        work()


@pytest.mark.parametrize(
    ("stage", "arm", "prompt"),
    [("bootstrap", "", "critic"), ("train", "full", "adapter"), ("train", "outcome", "judge")],
)
def test_each_prompt_that_the_stage_depends_on_is_named(project, stage, arm, prompt):
    (project / "experiments").unlink()
    shutil.copytree(ROOT / "experiments", project / "experiments")
    params = project / "params.yaml"
    config = load(params)
    around = unchanged(STAGES[stage], config, project, arm, params)
    around.__enter__()
    (project / config.model.prompts / f"{prompt}.txt").write_text("another\n")
    with pytest.raises(ConfigError, match=rf"changed while {stage} ran: \S+/{prompt}\.txt: \w+ -> "):
        around.__exit__(None, None, None)


def test_code_outside_of_the_project_that_changes_meanwhile_is_named(project, tmp_path_factory, monkeypatch):
    place = tmp_path_factory.mktemp("outside")
    (place / "unchanged_outside.py").write_text("")
    monkeypatch.syspath_prepend(place)
    config = load(project / "params.yaml").model_copy(
        update={"env": {"_target_": "unchanged_outside.Family"}}
    )
    around = unchanged(STAGES["tasks"], config, project, "full", project / "params.yaml")
    around.__enter__()
    (place / "unchanged_outside.py").write_text("another\n")
    with pytest.raises(ConfigError, match=r"changed while tasks ran: .*unchanged_outside\.py: \w+ -> "):
        around.__exit__(None, None, None)


def test_prompts_of_the_solver_s_own_are_named(project):
    shutil.copytree(ROOT / "experiments" / "prompts" / "embedded", project / "own")
    params = project / "params.yaml"
    compose.write(params, ["scale=smoke", "+evaluate.solver={path: models/policy, prompts: own}"], project)
    around = unchanged(STAGES["evaluate"], load(params), project, "full", params)
    around.__enter__()
    (project / "own" / "policy_turn.txt").write_text("another\n")
    with pytest.raises(ConfigError, match=r"changed while evaluate ran: own/policy_turn\.txt: \w+ -> "):
        around.__exit__(None, None, None)


@pytest.mark.parametrize(
    ("stage", "arm", "prompt"),
    [
        ("tasks", "", "judge"),
        ("report", "", "judge"),
        ("evaluate", "full", "adapter"),
        ("train", "outcome", "critic"),
    ],
)
def test_prompts_that_the_stage_does_not_depend_on_may_change(project, stage, arm, prompt):
    (project / "experiments").unlink()
    shutil.copytree(ROOT / "experiments", project / "experiments")
    params = project / "params.yaml"
    config = load(params)
    with unchanged(STAGES[stage], config, project, arm, params):
        (project / config.model.prompts / f"{prompt}.txt").write_text("another\n")


def test_the_command_of_a_stage_fails_and_says_so(project, monkeypatch, capsys):
    make = tasks.make_tasks

    def meanwhile(config, root):
        make(config, root)
        rewrite(project / "params.yaml", "tasks.train=4")

    monkeypatch.setattr(tasks, "make_tasks", meanwhile)
    assert run(project, "tasks") == 2
    assert "changed while tasks ran: tasks.train: 3 -> 4" in capsys.readouterr().err
    monkeypatch.undo()
    assert run(project, "tasks") == 0
    assert read_mapping(project / "params.yaml")["tasks"]["train"] == 4


def test_the_command_of_a_trial_does_too(project, monkeypatch, capsys):
    words = [*TINY, "signals.lambda=0.5"]
    found = trial.prepare(project, project / "params.yaml", words)
    (found.root / "evaluation").mkdir()
    (found.root / "evaluation" / "base.json").write_text("{}")
    monkeypatch.setattr(
        report, "write_report", lambda config, root: rewrite(root / "params.yaml", "signals.lambda=0.25")
    )
    assert run(project, "report", *words) == 2
    assert "changed while report ran: signals.lambda: 0.5 -> 0.25" in capsys.readouterr().err


PROMPT = "experiments/prompts/embedded/judge.txt"


def own_experiments(folder: Path) -> Path:
    """A project's folder of experiments as files of its own; returns a prompt of it."""
    (folder / "experiments").unlink(missing_ok=True)
    shutil.copytree(ROOT / "experiments", folder / "experiments")
    return folder / PROMPT


def stage_of(prompt: Path, changing: str, ran: list[str]):
    """In the place of a stage that makes tasks or base models: writes the prompt that it had."""

    def work(_config, root: Path, command: tuple[str, ...]) -> None:
        ran.append(command[0])
        if command[0] == changing:
            prompt.write_text("another\n")
        place = root / {"tasks": "data/tasks/manifest.json", "bootstrap": "models/bootstrap.json"}[command[0]]
        place.parent.mkdir(parents=True)
        place.write_text(prompt.read_text())

    return work


@pytest.mark.parametrize("own", [False, True])
@pytest.mark.parametrize("changing", ["tasks", "bootstrap"])
def test_inputs_of_a_trial_that_a_changed_prompt_made_are_not_kept_for_it(
    project, monkeypatch, capsys, changing, own
):
    """own: the workspace has sources of its own, as one that `make repro` filled."""
    place = project / ".rla" / "mine"
    if own:
        place.mkdir(parents=True)
        (place / "envs").symlink_to(ROOT / "envs")
        (place / "dvc.yaml").symlink_to(ROOT / "dvc.yaml")
        compose.write(place / "params.yaml", [*TINY, "seed=7"], project)
    prompt = own_experiments(place if own else project)
    before, ran = prompt.read_text(), []
    words = ["--workspace", "mine", "bootstrap", *TINY, "seed=7"]
    monkeypatch.setattr(trial, "run_command", stage_of(prompt, changing, ran))
    monkeypatch.setattr(inputs, "run_command", stage_of(prompt, changing, ran))
    stops = changing == "bootstrap" or not own  # a workspace's own tasks depend on no prompt
    assert run(project, *words) == (2 if stops else 0)
    assert (f"changed while {changing} ran" in capsys.readouterr().err) == stops
    if not stops:
        return
    prompt.write_text(before)
    for place_of in (trial, inputs):
        monkeypatch.setattr(place_of, "run_command", stage_of(prompt, "", ran))
    ran.clear()
    assert run(project, *words) == 0
    assert ran == (["tasks", "bootstrap"] if changing == "tasks" else ["bootstrap"])
    assert (place / "models" / "bootstrap.json").read_text() == before
