"""Where an evaluation was made is recorded beside it, and changes no byte of it."""

from __future__ import annotations

import golden_cases as golden
import pytest

from rlanything.runs import provenance
from rlanything.runs.layout import Layout
from rlanything.stages import evaluate
from rlanything.stages.missing import run_command


@pytest.fixture
def project(tmp_path, monkeypatch):
    """Its measurements find nothing, at once."""
    monkeypatch.setattr(evaluate, "_measure", lambda config, root, arm: {"seeds": {"0": {}}})
    return golden.project(tmp_path / "project")


def measure(root, arm: str = "base") -> bytes:
    run_command(golden.configuration(), root, ("evaluate", "--arm", arm))
    return Layout(root).evaluation(arm).read_bytes()


def test_it_names_machine_packages_and_command_as_the_start_of_a_run_does(project):
    measure(project)
    found = provenance.measured(project, "base")
    (start,) = found["starts"]
    assert start["machine"] == provenance.machine()
    assert start["packages"] == provenance.packages()
    assert start["command"].startswith("rlanything")
    assert start["at"] <= found["finished"]


def test_equal_evaluations_of_two_machines_are_equal_files(project, monkeypatch):
    here = measure(project)
    other = provenance.machine() | {"cpu": "another processor", "cores": 96, "accelerators": ["a GPU"]}
    monkeypatch.setattr(provenance, "machine", lambda: other)
    assert measure(project) == here
    assert provenance.measured(project, "base")["starts"][0]["machine"] == other


@pytest.mark.parametrize("gone", [False, True])
def test_that_of_another_evaluation_is_not_taken_for_its(project, gone):
    measure(project)
    file = Layout(project).evaluation("base")
    file.unlink() if gone else file.write_text("{}")
    assert provenance.measured(project, "base") == {"starts": [], "finished": None}


def test_one_that_fails_leaves_the_record_of_the_evaluation_that_stays(project, monkeypatch):
    measure(project)
    before = provenance.measured(project, "base")

    def fail(*_: object) -> None:
        raise RuntimeError("no")

    monkeypatch.setattr(evaluate, "_measure", fail)
    with pytest.raises(RuntimeError):
        measure(project)
    assert provenance.measured(project, "base") == before


def test_git_knows_nothing_of_it():
    path = Layout(golden.ROOT).measured("base").relative_to(golden.ROOT).as_posix()
    ignored = (golden.ROOT / ".gitignore").read_text().splitlines()
    assert any(f"/{path}".startswith(line) for line in ignored if line.endswith("/") and line.startswith("/"))
