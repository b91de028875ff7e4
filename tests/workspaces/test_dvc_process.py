"""A stage ends with the DVC that started it. Any other goes on when the process that started it ends."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

pytestmark = pytest.mark.integration

STAGE = """
import os, pathlib, sys, time
from rlanything.cli import main
from rlanything.stages import tasks

def work(config, root):
    pathlib.Path("pid").write_text(str(os.getpid()))
    time.sleep(300)

tasks.make_tasks = work
sys.exit(main(["--root", sys.argv[1], "tasks"]))
"""
PATIENCE_S = 120.0


@pytest.fixture
def start(project, tmp_path_factory, monkeypatch) -> Iterator[Callable[[list[str]], tuple]]:
    """Starts a command, and waits for the stage that it runs. Returns both processes. The stage does nothing, long."""
    (project / "dvc.yaml").unlink()  # that of DVC's folder is another
    here = tmp_path_factory.mktemp("dvc")
    (here / "stage.py").write_text(STAGE)
    monkeypatch.chdir(here)
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}:{os.environ['PATH']}")
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[2]))
    started: list[psutil.Process] = []

    def begin(command: list[str]) -> tuple[psutil.Process, psutil.Process]:
        parent = psutil.Popen(command)
        started.append(parent)
        _wait(lambda: Path("pid").is_file() and Path("pid").read_text() != "")
        stage = psutil.Process(int(Path("pid").read_text()))
        started.append(stage)
        return parent, stage

    yield begin
    for process in started:
        if process.is_running():
            process.kill()


def _wait(true: Callable[[], bool], seconds: float = PATIENCE_S) -> bool:
    end = time.monotonic() + seconds
    while not (found := true()) and time.monotonic() < end:
        time.sleep(0.1)
    return found


def _ended(process: psutil.Process) -> bool:
    return not process.is_running() or process.status() == psutil.STATUS_ZOMBIE


@pytest.mark.parametrize("shell", ["{}", "true && {} ; true"])
def test_a_stage_ends_when_its_dvc_is_killed(start, project, shell):
    """Its parent is DVC itself, or a shell that waits for it."""
    command = shell.format(f"python stage.py {project}")
    Path("dvc.yaml").write_text(f"stages: {{tasks: {{cmd: '{command}'}}}}\n")
    subprocess.run(["dvc", "init", "--no-scm", "-q"], check=True)
    dvc, stage = start([sys.executable, "-m", "dvc", "repro"])
    dvc.kill()
    dvc.wait()
    assert _wait(lambda: _ended(stage))


@pytest.mark.parametrize("named", ["", "tasks"])
def test_a_stage_that_no_dvc_started_goes_on_when_its_parent_is_killed(start, project, monkeypatch, named):
    """Also where the variable is set that DVC sets."""
    monkeypatch.delenv("DVC_STAGE", raising=False)
    if named:
        monkeypatch.setenv("DVC_STAGE", named)
    shell, stage = start(["sh", "-c", f"{sys.executable} stage.py {project}; true"])
    shell.kill()
    shell.wait()
    assert not _wait(lambda: _ended(stage), 4.0)
