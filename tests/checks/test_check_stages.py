"""Every declared check can be a stage of DVC: `make check` asks what it runs, and what that depends on."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
from stage_cases import ROOT

from rlanything.checks import finished_runs, running, stages
from rlanything.checks.adaptation import command as adaptation
from rlanything.checks.corruption import command as corruption
from rlanything.checks.declaration import published
from rlanything.checks.ladder.declare import load_ladder
from rlanything.checks.selection import command as selection
from rlanything.checks.selection.declare import load_selection
from rlanything.checks.workspace import Task, Workspace
from rlanything.config import Config, load
from rlanything.core.errors import ConfigError
from rlanything.planning import compose, pipeline

DECLARED = {
    "ladder": "ladder",
    "ladder_former": "ladder",
    "fitness": "ladder",
    "written_tests": "ladder",
    "study": "study",
    "table1": "study",
    "table1_fit": "study",
    "paper_start": "study",
    "paper_start_mixed": "study",
    "paper_start_lambda": "study",
    "lambda_and_mixed": "study",
    "larger_models": "study",
    "strong_reward_faster": "study",
    "arms_fit": "study",
    "votes_apart": "study",
    "long": "study",
    "transfer": "study",
    "weak_reward": "study",
    "weak_reward_faster": "study",
    "weak_reward_spread": "study",
    "rewriting": "study",
    "pairwise": "study",
    "many_votes": "study",
    "pairwise_votes": "study",
    "votes_alone": "study",
    "below_chance": "study",
    "slow_learning": "study",
    "fast_learning": "study",
    "coding_table1": "study",
    "five_times": "study",
    "five_times_fit": "study",
    "selection": "selection",
    "corruption": "corruption",
    "corruption_learned": "corruption",
    "adaptation": "adaptation",
    "adaptation_fit": "adaptation",
    "pool": "pool",
}
FOLDER = ROOT / "experiments" / "check"
LEARNED = "+arm@arms.policy_learned=policy_learned"


def test_the_keys_of_a_file_say_which_check_it_declares():
    assert {path.stem: stages.kind(path) for path in FOLDER.glob("*.yaml")} == DECLARED


@pytest.mark.parametrize(
    ("check", "overrides", "runs"),
    [
        (adaptation.CHECK, (), {"full", "policy_reward"}),
        (corruption.CHECK, (), {"full", "policy_reward"}),
        (
            selection.CHECK,
            ("env=coding", LEARNED),
            {"full", "policy_reward", "policy", "policy_learned", "outcome"},
        ),
    ],
    ids=lambda value: getattr(value, "name", ""),
)
def test_what_began_elsewhere_is_asked_of_the_runs_that_the_stage_depends_on(
    check, overrides, runs, tmp_path, monkeypatch
):
    file, config = settled(tmp_path, check.name, *overrides)
    asked = []
    monkeypatch.setattr(finished_runs, "check_began", lambda _config, _root, arm: asked.append(arm))
    with pytest.raises(ConfigError):  # nothing was trained
        check.declared(file, tmp_path, config, 1)
    found = [path for path in stages.dependencies(file, tmp_path) if path.startswith("runs/")]
    assert found == [f"runs/{arm}" for arm in asked]
    assert set(asked) == runs


def test_a_pair_whose_reward_model_another_arm_trained_depends_on_the_runs_of_both(tmp_path):
    file, config = settled(tmp_path, "selection", "env=coding", LEARNED)
    file.write_text("arms: [policy_learned]\nprograms: 4\n")
    assert load_selection(file).measured(config) == ("policy_reward", "policy_learned")
    assert {"runs/policy_learned", "runs/policy_reward"} <= set(stages.dependencies(file, tmp_path))


def settled(root: Path, name: str, *overrides: str) -> tuple[Path, Config]:
    """A declaration of the repository in a project that is set to this, and its configuration."""
    (root / "experiments").symlink_to(ROOT / "experiments")
    compose.write(root / "params.yaml", ["scale=smoke", *overrides], root)
    file = root / f"{name}.yaml"
    shutil.copyfile(FOLDER / file.name, file)
    return file, load(root / "params.yaml")


def test_a_file_that_is_missing_or_declares_no_check_is_refused_with_what_there_is(tmp_path):
    with pytest.raises(
        ConfigError,
        match=r"ladders\.yaml: no such file; .*check has .*ladder_former, lambda_and_mixed, larger_models, long",
    ):
        stages.kind(FOLDER / "ladders.yaml")
    (tmp_path / "other.yaml").write_text("colour: red\n")
    with pytest.raises(ConfigError, match="none of its keys is one of ladder, study"):
        stages.kind(tmp_path / "other.yaml")


def test_keys_that_several_checks_have_choose_none_of_them(tmp_path):
    """`arms` and `seeds` are keys of a study too, which would train for hours."""
    (tmp_path / "short.yaml").write_text("arms: [full]\nseeds: 2\n")
    with pytest.raises(ConfigError, match="can be those of study or selection or corruption; add one"):
        stages.kind(tmp_path / "short.yaml")


@pytest.mark.parametrize("name", ["ladder", "study"])
def test_a_check_that_trains_depends_on_inputs_declarations_and_what_trains(name):
    found = stages.dependencies(FOLDER / f"{name}.yaml", ROOT)
    assert {"data/tasks", "models", "experiments", "rlanything/learn"} <= set(found)
    assert f"rlanything/checks/{name}" in found
    assert not [path for path in found if path.startswith("runs")]


@pytest.mark.parametrize(
    ("name", "runs"),
    [
        ("corruption", {"runs/policy_reward", "runs/full"}),
        ("adaptation", {"runs/policy_reward", "runs/full"}),
    ],
)
def test_a_check_of_finished_runs_depends_on_these_and_on_the_whole_configuration(name, runs):
    found = stages.dependencies(FOLDER / f"{name}.yaml", ROOT)
    assert {path for path in found if path.startswith("runs/")} == runs
    assert {"params.yaml", "data/tasks", "models", f"rlanything/checks/{name}"} <= set(found)


def test_a_selection_is_refused_where_no_tests_are_written():
    with pytest.raises(ConfigError, match="env=coding"):
        stages.dependencies(FOLDER / "selection.yaml", ROOT)


def test_a_study_of_another_default_depends_on_what_its_registered_configuration_does(tmp_path, monkeypatch):
    composed = []
    keep = compose.compose
    monkeypatch.setattr(compose, "compose", lambda *words: composed.append(keep(*words)) or composed[-1])
    stages.dependencies(FOLDER / "table1.yaml", ROOT)
    stages.dependencies(FOLDER / "table1.yaml", ROOT, pinned=True)
    assert [one["signals"]["lambda"] for one in (composed[0], composed[-1])] == [1.0, 0.3]
    with pytest.raises(ConfigError, match="declares a check 'ladder'; only a study is registered"):
        stages.dependencies(FOLDER / "ladder.yaml", ROOT, pinned=True)
    shutil.copyfile(FOLDER / "table1.yaml", tmp_path / "mine.yaml")
    with pytest.raises(ConfigError, match=r"checks/mine/registration\.json: no such file"):
        stages.dependencies(tmp_path / "mine.yaml", ROOT, pinned=True)


def make(*words: str) -> subprocess.CompletedProcess[str]:
    """`make check` without its installation."""
    command = ["make", "check", f"VENV={sys.prefix}", "--old-file=install", *words]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


@pytest.mark.long
@pytest.mark.integration
def test_a_typo_ends_make_with_the_names_that_there_are():
    done = make("CHECK=ladders")
    assert done.returncode != 0
    assert "ladders.yaml: no such file" in done.stderr
    assert "Traceback" not in done.stderr
    done = make("CHECK=ladder", "REGISTERED=1")
    assert done.returncode != 0
    assert "declares a check 'ladder'; only a study is registered" in done.stderr


@pytest.mark.integration
def test_a_check_of_another_folder_runs_there_and_is_refused_where_there_is_none(tmp_path):
    place = f"{tmp_path}/coding-smoke"
    done = make("CHECK=selection", "ENV=coding", f"WORKSPACE={place}")
    assert f"{place} is not there yet" in done.stderr
    shutil.copytree(ROOT / "experiments", Path(place) / "experiments")
    (Path(place) / "dvc.yaml").touch()
    said = make("--dry-run", "CHECK=selection", "ENV=coding", f"WORKSPACE={place}").stdout
    assert f"cd {place} && python -m rlanything check selection experiments/check/selection.yaml" in said
    assert f"cd {place} && dvc repro checks/dvc.yaml:selection" in said


@pytest.mark.integration
def test_a_study_can_be_a_stage_as_it_was_registered():
    said = make("--dry-run", "CHECK=table1", "REGISTERED=1").stdout
    assert "python -m rlanything check study --registered experiments/check/table1.yaml --dry-run" in said
    assert "python -m rlanything.checks.stages deps --registered experiments/check/table1.yaml" in said
    assert "checks/table1 python -m rlanything check study --registered experiments/check/table1.yaml" in said


def test_two_processes_do_not_publish_one_check_at_the_same_time(tmp_path):
    with published("mine", tmp_path) as first:
        (first / "report.md").write_text("first")
        command = (
            "import sys; from pathlib import Path; from rlanything.checks.declaration import published\n"
        )
        command += "with published('mine', Path(sys.argv[1])): pass"
        other = subprocess.run(
            [sys.executable, "-c", command, str(tmp_path)],
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=False,
        )
        assert "another process publishes it" in other.stderr
    assert (tmp_path / "checks" / "mine" / "report.md").read_text() == "first"


class Space:
    """A workspace whose project is changed after so many tasks."""

    def __init__(self, root: Path, after: int) -> None:
        self.root, self.project, self.after, self.done = root, root, after, []

    def prepare(self) -> None: ...

    def is_current(self) -> bool:
        return len(self.done) < self.after

    def tasks(self) -> Iterator[Task]:
        return iter([Task(name, partial(self.done.append, name)) for name in ("one", "two", "three")])


@pytest.mark.parametrize("after", [0, 2])
def test_nothing_more_is_done_once_the_project_has_changed_and_nothing_published(tmp_path, after):
    """After 0: while the check started, when its workspace had its name."""
    space = Space(tmp_path, after)
    with (
        pytest.raises(ConfigError, match="were changed while the check ran"),
        running.finished(space, "check"),
    ):
        pytest.fail("it would be published now")
    assert space.done == ["one", "two"][:after]


def test_a_workspace_is_current_until_the_project_is_another(monkeypatch):
    ladder = load_ladder(ROOT / "experiments" / "check" / "ladder.yaml")
    space = Workspace.of("ladder", ladder, ROOT, ROOT / "params.yaml", 1)
    assert space.is_current()
    other = ladder.model_copy(update={"seeds": ladder.seeds + 1})
    assert not replace(space, declared=other).is_current()
    monkeypatch.setattr(pipeline, "versions", lambda _: {"torch": "0.0.1"})
    assert not space.is_current(), "arms of two versions of a package are never compared"
