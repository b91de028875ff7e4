"""What the command line says where code of an environment raised something."""

from __future__ import annotations

from pathlib import Path

import pytest

from rlanything import cli
from rlanything.core.errors import EnvironmentFailure
from rlanything.planning import compose
from rlanything.runs.workers import portable
from rlanything.stages import tasks

ROOT = Path(__file__).parents[1]
SAID = "env: Rooms.explain failed"


def raised(elsewhere: bool) -> BaseException:
    """The error, with its cause; from another process it comes with a note alone."""
    if elsewhere:
        return portable(EnvironmentFailure(SAID), "in a worker process")
    error = EnvironmentFailure(SAID)
    error.__cause__ = KeyError("room")
    return error


@pytest.mark.parametrize("elsewhere", [False, True])
def test_what_an_environment_raised_comes_with_how_to_find_it(elsewhere, tmp_path, capsys, monkeypatch):
    def fails(*_):
        raise raised(elsewhere)

    (tmp_path / "experiments").symlink_to(ROOT / "experiments")
    compose.write(tmp_path / "params.yaml", ["scale=smoke"], tmp_path)
    monkeypatch.setattr(tasks, "make_tasks", fails)
    assert cli.main(["--root", str(tmp_path), "tasks"]) == 2
    assert capsys.readouterr().err == f"rlanything: {SAID}. --traceback shows where\n"
