"""A run that began from other tasks or base models than there are now is not measured by hand."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from stage_cases import small

from rlanything.cli import main
from rlanything.core.errors import ConfigError
from rlanything.runs import provenance
from rlanything.runs.layout import Layout
from rlanything.runs.resuming.began import check_began

ARM = "full"
pytestmark = pytest.mark.integration


def changed_record(root: Path, change: Callable[[dict[str, Any]], object]) -> None:
    path = Layout(root).provenance(ARM)
    record = json.loads(path.read_text())
    change(record)
    path.write_text(json.dumps(record))


def test_what_the_runs_began_from_is_there(finished_project):
    check_began(small(), finished_project, ARM)


def other(path: Path) -> None:
    path.write_bytes(b"other")


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("models/policy/model.safetensors", other),
        ("models/policy/model.safetensors", Path.unlink),
        ("data/tasks/train.jsonl", other),
    ],
)
def test_other_models_or_tasks_are_refused_with_what_differs(finished_project, name, change):
    change(finished_project / name)
    with pytest.raises(ConfigError, match=rf"began from other .*{name}.*`rlanything train --arm {ARM}`"):
        check_began(small(), finished_project, ARM)


def test_the_settings_that_made_them_are_named(finished_project):
    (finished_project / "models/policy/model.safetensors").write_bytes(b"other")
    with pytest.raises(ConfigError, match=r"Settings that differ \(theirs -> now\): seed: \d+ -> 7\."):
        check_began(small("seed=7"), finished_project, ARM)


def test_panels_and_runs_without_a_record_are_not_compared(finished_project):
    Layout(finished_project).tasks("in_domain").write_text("other")
    check_began(small(), finished_project, ARM)
    (finished_project / "models/policy/model.safetensors").write_bytes(b"other")
    Layout(finished_project).provenance(ARM).unlink()
    check_began(small(), finished_project, ARM)


def test_training_tasks_that_are_not_here_are_not_compared(finished_project):
    """The evaluation reads panels alone, and they can be fetched alone."""
    Layout(finished_project).tasks("train").unlink()
    check_began(small(), finished_project, ARM)


def test_a_record_of_another_version_is_not_compared(finished_project):
    (finished_project / "models/policy/model.safetensors").write_bytes(b"other")
    changed_record(finished_project, lambda record: record.update(schema=1))
    check_began(small(), finished_project, ARM)


def test_a_record_whose_configuration_lacks_a_section_still_names_what_differs(finished_project):
    (finished_project / "models/policy/model.safetensors").write_bytes(b"other")
    changed_record(finished_project, lambda record: record["config"].pop("bootstrap"))
    with pytest.raises(ConfigError, match="began from other training tasks or base models"):
        check_began(small(), finished_project, ARM)


def test_models_that_are_not_whole_have_an_error_of_their_own(finished_project, capsys):
    (finished_project / "models/policy/model.safetensors").write_bytes(b"other")
    Layout(finished_project).bootstrap.unlink()
    assert main(["--root", str(finished_project), "evaluate", "--arm", ARM]) == 2
    assert "so models/ is not whole" in capsys.readouterr().err


def test_the_command_refuses_before_any_work(finished_project, capsys):
    (finished_project / "models/policy/model.safetensors").write_bytes(b"other")
    assert main(["--root", str(finished_project), "evaluate", "--arm", ARM]) == 2
    assert "these runs began from other training tasks or base models" in capsys.readouterr().err
    assert not Layout(finished_project).evaluation(ARM).is_file()


@pytest.mark.parametrize("check", ["corruption", "adaptation"])
def test_a_check_of_finished_runs_refuses_before_any_work(check, finished_project, capsys):
    """It measures them beside the base models."""
    file = finished_project / "tiny.yaml"
    file.write_text("arms: [full]" if check == "corruption" else "against: null")
    words = ["--root", str(finished_project), "check", check, str(file), "--dry-run"]
    assert main(words) == 0
    (finished_project / "models/policy/model.safetensors").write_bytes(b"other")
    assert main(words) == 2
    assert "these runs began from other training tasks or base models" in capsys.readouterr().err


def test_a_record_of_other_runs_refuses_nothing_and_that_is_said(finished_project, capsys):
    """As git brings one."""
    (finished_project / "models/policy/model.safetensors").write_bytes(b"other")
    changed_record(finished_project, lambda record: record["seeds"]["0"].update(sha256="0" * 64))
    check_began(small(), finished_project, ARM)
    said = capsys.readouterr().err
    assert f"{Layout(finished_project).provenance(ARM)}: of other runs than those in" in said


def test_the_runs_are_read_only_where_they_would_be_refused(finished_project, monkeypatch):
    monkeypatch.setattr(provenance, "of_other_runs", lambda *_: pytest.fail("read"))
    check_began(small(), finished_project, ARM)


def test_a_seed_that_is_not_here_makes_no_other_runs_of_the_others(finished_project):
    (finished_project / "models/policy/model.safetensors").write_bytes(b"other")
    changed_record(finished_project, lambda record: record["seeds"].update({"7": record["seeds"]["0"]}))
    with pytest.raises(ConfigError, match="began from other training tasks or base models"):
        check_began(small(), finished_project, ARM)
