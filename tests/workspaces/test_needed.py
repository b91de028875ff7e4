"""A stage of a trial that cannot work says so at once, makes nothing, and names the command of the trial that helps."""

from __future__ import annotations

import shlex

import pytest
from workspace_cases import TINY, run

from rlanything.sweep.trials import inputs
from rlanything.workspaces import trial

WORDS = [*TINY, "signals.lambda=0.5"]


@pytest.fixture(autouse=True)
def _nothing_runs(monkeypatch):
    monkeypatch.setattr(inputs, "run_command", lambda *_: pytest.fail("a stage ran"))


def test_a_report_needs_what_was_measured_in_the_trial(project, capsys):
    assert run(project, "report", *WORDS) == 2
    said = capsys.readouterr().err
    name = trial.trial_name(WORDS)
    assert f"workspace {name}: nothing to report, because base is not measured here" in said
    assert f"`rlanything --workspace {name} evaluate --arm base {shlex.join(WORDS)}` measures it" in said
    assert not (project / ".rla").exists()


def test_a_report_makes_no_tasks(project, capsys):
    found = trial.prepare(project, project / "params.yaml", WORDS)
    (found.root / "evaluation").mkdir()
    (found.root / "evaluation" / "base.json").write_text("{}")
    assert run(project, "report", *WORDS) == 2
    assert "base.json" in capsys.readouterr().err


def test_nothing_to_label_is_said_by_the_configuration_alone(project, capsys):
    assert run(project, "label", *WORDS) == 2
    assert "nothing to label" in capsys.readouterr().err
    assert not (project / ".rla").exists()


def test_an_arm_without_a_run_is_not_evaluated_and_workspaces_with_one_are_named(project, capsys):
    other = trial.prepare(project, project / "params.yaml", [*TINY, "signals.lambda=0.25"], "quarter")
    (other.root / "runs" / "full" / "seed-0").mkdir(parents=True)
    assert run(project, "--workspace", "half", "evaluate", "--arm", "full", *WORDS) == 2
    said = capsys.readouterr().err
    assert "workspace half: no finished run of full here; " in said
    assert f"`rlanything --workspace half train --arm full {shlex.join(WORDS)}` makes it" in said
    assert said.endswith("Workspaces that have one (`rlanything ls`): quarter\n")
    assert not (project / ".rla" / "half").exists()


def test_the_arm_whose_reward_model_judges_is_needed_first(project, capsys):
    words = [*WORDS, "+arm@arms.step_only=step_only"]
    assert run(project, "evaluate", "--arm", "step_only", *words) == 2
    assert "no finished run of full here" in capsys.readouterr().err


def test_the_base_needs_no_run(project, monkeypatch):
    ran = []
    monkeypatch.setattr(inputs, "run_command", lambda config, root, command: ran.append(command))
    assert run(project, "evaluate", "--arm", "base", *WORDS) == 2  # this test makes no models
    assert ran == [("tasks",), ("bootstrap",)]
