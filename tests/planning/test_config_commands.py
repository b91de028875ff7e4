"""The commands `config write`, `show` and `check`: which file they read, and which one they may replace."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
import yaml

from rlanything.cli import main
from rlanything.config import load, parse
from rlanything.planning import check, compose, dvcfile
from rlanything.stages import tasks

ROOT = Path(__file__).parents[2]


@pytest.fixture
def project(tmp_path) -> Path:
    """A project with its sources and a tiny configuration."""
    for name in ("experiments", "envs"):
        (tmp_path / name).symlink_to(ROOT / name)
    compose.write(tmp_path / "params.yaml", ["scale=smoke"], tmp_path)
    return tmp_path


def run(project: Path, *words: str) -> int:
    return main(["--root", str(project), *words])


def refused(project: Path, capsys: pytest.CaptureFixture[str], *words: str) -> str:
    capsys.readouterr()
    assert run(project, *words) == 2
    return capsys.readouterr().err


def test_writing_replaces_no_file_that_it_did_not_write(project, capsys):
    mine, folder = project / "mine.yaml", project / "folder"
    mine.write_text("stages: {}\n")
    folder.mkdir()
    for words in (["config", "write", "--output", str(mine)], ["--params", str(mine), "config", "write"]):
        argument = next(word for word in words if word.startswith("--"))
        said = refused(project, capsys, *words)
        assert f"{argument} {mine}: exists and is no file that `config write` wrote; name another one" in said
        assert mine.read_text() == "stages: {}\n"
    said = refused(project, capsys, "config", "write", "--output", str(folder))
    assert f"--output {folder}: is a folder; name a file, e.g. trial.yaml" in said
    assert list(folder.iterdir()) == []


def test_code_that_dvc_does_not_see_is_warned_of_wherever_a_configuration_is_checked(
    project, tmp_path_factory, monkeypatch, capsys
):
    place = tmp_path_factory.mktemp("outside")
    (place / "unseen_outside.py").write_text(
        "from envs.alfworld.family import AlfworldFamily as Base\nclass Mine(Base): pass\n"
    )
    monkeypatch.syspath_prepend(place)
    monkeypatch.setenv("RLANYTHING_ALLOW", "unseen_outside")
    said = "warning: env._target_ = 'unseen_outside.Mine': its code lies outside of the project"
    mine = ["scale=smoke", "env._target_=unseen_outside.Mine"]
    for words in (["check"], ["write"]):
        capsys.readouterr()
        assert run(project, "config", *words, *mine) == 0
        assert said in capsys.readouterr().err
    assert run(project, "config", "check", "scale=smoke") == 0
    assert "outside of the project" not in capsys.readouterr().err


OUTSIDE = """
from envs.alfworld.family import AlfworldFamily


class Silent(AlfworldFamily):
    pass


class Open(AlfworldFamily):
    constructor_only_checks = True


class Needy(AlfworldFamily):
    def __init__(self, *, rooms, **keys):
        super().__init__(**keys)
"""


@pytest.fixture
def outside(tmp_path_factory, monkeypatch) -> None:
    """A module of environments that is allowed and is none of the project."""
    place = tmp_path_factory.mktemp("outside")
    (place / "families_outside.py").write_text(OUTSIDE)
    monkeypatch.syspath_prepend(place)
    monkeypatch.delitem(sys.modules, "families_outside", raising=False)
    monkeypatch.setenv("RLANYTHING_ALLOW", "families_outside")


@pytest.mark.usefixtures("outside")
@pytest.mark.parametrize("command", ["check", "write"])
def test_a_value_that_an_environment_from_outside_refuses_is_told_before_any_work(project, command, capsys):
    """Where its class says that its constructor only checks. Otherwise one hears that no value was checked."""
    before = (project / "params.yaml").read_text()
    wrong = ["scale=smoke", "env.receptacles=[7,2]"]
    said = refused(project, capsys, "config", command, *wrong, "env._target_=families_outside.Open")
    assert "env: receptacles: [7, 2] is not [least, most]" in said
    assert (project / "params.yaml").read_text() == before
    assert run(project, "config", command, "scale=smoke", "env._target_=families_outside.Open") == 0
    assert "only the names of its arguments are checked" not in capsys.readouterr().err
    assert run(project, "config", command, *wrong, "env._target_=families_outside.Silent") == 0
    said = capsys.readouterr().err
    assert (
        "warning: env._target_ = 'families_outside.Silent': only the names of its arguments are checked"
        in said
    )


@pytest.mark.usefixtures("outside")
def test_an_argument_that_an_environment_from_outside_needs_is_missed(project, capsys):
    said = refused(project, capsys, "config", "check", "scale=smoke", "env._target_=families_outside.Needy")
    assert "env: Needy: missing a required" in said
    assert "'rooms'" in said
    given = "env._target_=families_outside.Needy", "+env.rooms=3"
    assert run(project, "config", "check", "scale=smoke", *given) == 0


def test_embedded_models_are_refused_where_nothing_can_be_taught_and_checkpoints_are_not(project, capsys):
    (project / "set.json").write_text("[]")
    files = (
        "env.problems={train: set.json, in_domain: set.json, out_of_domain: set.json, reward_panel: set.json}"
    )
    said = refused(project, capsys, "config", "check", "scale=smoke", "env=coding", files)
    assert "model.embedded: `bootstrap` teaches these models" in said
    assert "env.problems: those from files come without the steps of a solution" in said
    assert run(project, "config", "check", "scale=smoke", "env=coding") == 0
    reading = "model.prompts=experiments/prompts/paper/coding", "model.action_format=verbatim"
    other = "model=local", "path=models/own", "engine=transformers", *reading
    config = parse(compose.compose(["scale=smoke", "env=coding", files, *other], project))
    check.check(config, project, engine=False)


def test_writing_replaces_what_it_wrote_and_the_projects_own_file(project):
    trial = project / "trial.yaml"
    for value in ("0.5", "0.25"):
        assert run(project, "config", "write", "--output", str(trial), f"signals.lambda={value}") == 0
        assert yaml.safe_load(trial.read_text())["signals"]["lambda"] == float(value)
    params = project / "params.yaml"
    params.write_text("seed: 1\n")  # as a program leaves it that keeps no comments
    assert run(project, "config", "write", "scale=smoke") == 0
    assert compose.is_composed(params)


def test_show_prints_the_file_that_is_named(project, tmp_path, capsys):
    other = tmp_path / "other.yaml"
    compose.write(other, ["scale=smoke", "signals.lambda=0.125"], project)
    (project / ".rla" / "half").mkdir(parents=True)
    (project / ".rla" / "half" / "params.yaml").write_text(other.read_text())
    for words in (["--params", str(other)], ["--workspace", "half"]):
        capsys.readouterr()
        assert run(project, *words, "config", "show") == 0
        assert capsys.readouterr().out == other.read_text()
    assert run(project, "config", "show", "signals.lambda=0.75") == 0
    assert yaml.safe_load(capsys.readouterr().out)["signals"]["lambda"] == 0.75
    assert "nosuch.yaml" in refused(project, capsys, "--params", "nosuch.yaml", "config", "show")


@pytest.mark.parametrize("action", ["show", "check"])
def test_a_file_and_overrides_are_refused_together(project, capsys, action):
    said = refused(project, capsys, "--params", "nosuch.yaml", "config", action, "scale=smoke")
    assert "--params nosuch.yaml: with key=value experiments/ alone is read; leave one of them" in said


def test_a_check_of_two_files_is_refused(project, capsys):
    said = refused(project, capsys, "--params", "a.yaml", "config", "check", "b.yaml")
    assert "--params a.yaml: b.yaml is checked; leave one of them" in said


def test_an_arm_can_be_left_out_of_a_check(project, capsys):
    assert run(project, "config", "check", "scale=smoke", "~arms.full") == 0
    assert ", full" not in capsys.readouterr().out
    assert run(project, "config", "check", "~arms.full") == 0
    assert capsys.readouterr().out.startswith("~arms.full: valid (")


@pytest.fixture
def recorded(project, monkeypatch) -> Path:
    """A project with its dvc.yaml, in a stage that DVC started and that does nothing."""
    dvcfile.write(project, load(project / "params.yaml"))
    monkeypatch.setattr(tasks, "make_tasks", lambda config, root: None)
    monkeypatch.setenv("DVC_STAGE", "tasks")
    return project


@pytest.mark.parametrize(
    ("override", "named"),
    [
        ("arms.policy_reward.adapt=true", "train (arms: policy_reward)"),
        ("~arms.policy", "train (arms: policy)"),
        ("+arm@arms.step_only=step_only", "train (arms: step_only)"),
        ("env=coding_easy", "tasks (class: envs.coding.family.CodingFamily)"),
        ("env=coding_easy", "bootstrap (class: envs.coding.family.CodingFamily)"),
        ("engine=transformers", "bootstrap (class: rlanything.engines.transformers.TransformersEngine)"),
    ],
)
def test_dvc_does_not_run_the_pipeline_of_another_configuration(recorded, capsys, override, named):
    """As after `dvc exp run -S`, which writes params.yaml alone."""
    compose.write(recorded / "params.yaml", ["scale=smoke", override], recorded)
    said = refused(recorded, capsys, "tasks")
    assert "dvc.yaml: it was written for other arms, classes or switches" in said
    assert named in said
    assert run(recorded, "config", "write", "scale=smoke", override) == 0
    assert "wrote dvc.yaml" in capsys.readouterr().out
    assert run(recorded, "tasks") == 0


@pytest.mark.parametrize(
    "override", ["adaptation.alpha_high=0.5", "arms.full.max_batches=3", "train.seeds=2"]
)
def test_dvc_runs_the_pipeline_under_other_values(recorded, capsys, override):
    compose.write(recorded / "params.yaml", ["scale=smoke", override], recorded)
    assert run(recorded, "tasks") == 0
    assert run(recorded, "config", "write", "scale=smoke", override) == 0
    assert "dvc.yaml" not in capsys.readouterr().out, "its text is the same"


def test_code_that_dvc_yaml_does_not_name_yet_is_no_other_configuration(recorded):
    text = (recorded / "dvc.yaml").read_text()
    assert "    - envs/splits.py\n" in text
    (recorded / "dvc.yaml").write_text(text.replace("    - envs/splits.py\n", ""))
    assert run(recorded, "tasks") == 0


def test_a_dependency_that_the_user_added_is_no_other_configuration(recorded):
    text = (recorded / "dvc.yaml").read_text()
    (recorded / "dvc.yaml").write_text(text.replace("    deps:\n", "    deps:\n    - mine/games.json\n", 1))
    assert run(recorded, "tasks") == 0


def test_what_dvc_would_not_compare_is_named(recorded, capsys):
    text = (recorded / "dvc.yaml").read_text()
    assert text.count("    - tasks\n") >= 1
    (recorded / "dvc.yaml").write_text(text.replace("    - tasks\n", "", 1))
    assert "tasks (without the params tasks)" in refused(recorded, capsys, "tasks")


def test_a_stage_by_hand_and_a_project_without_a_pipeline_are_not_refused(recorded, monkeypatch):
    compose.write(recorded / "params.yaml", ["scale=smoke", "~arms.policy"], recorded)
    with monkeypatch.context() as by_hand:
        by_hand.delenv("DVC_STAGE")
        assert run(recorded, "tasks") == 0
    (recorded / "dvc.yaml").unlink()
    assert run(recorded, "tasks") == 0
