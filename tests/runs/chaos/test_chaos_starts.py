"""Two starts in one project, and what a killed start leaves of its processes."""

from __future__ import annotations

import itertools
import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest
from stage_cases import ROOT, SMALL, contents, small

from rlanything.core.errors import ConfigError
from rlanything.files import locks
from rlanything.files.records import write_json
from rlanything.planning import compose
from rlanything.runs.folder import RunFolder
from rlanything.runs.layout import Layout
from rlanything.stages import BEFORE_TRAINING, evaluate, tasks, train
from rlanything.stages.bootstrap import stage

POOL = """
import os, sys, time
from pathlib import Path
from rlanything.files import locks
from rlanything.runs.workers import run_all

def train(folder):
    with locks.held(Path(folder) / "lock", "taken"):
        os.write(1, b"held\\n")  # at once: print writes the end of the line by itself
        time.sleep(600)

if __name__ == "__main__":
    run_all(train, [(folder,) for folder in sys.argv[1:]], 2)
"""


@contextmanager
def start(script: Path, text: str, *words: object) -> Iterator[subprocess.Popen[str]]:
    """A script of its own process, which is killed where a check fails before it has ended."""
    script.write_text(text)
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, str(script), *map(str, words)]
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


@pytest.mark.long
def test_the_processes_of_a_killed_start_die_with_it_and_a_restart_has_their_folders(tmp_path):
    folders = [tmp_path / "seed-0", tmp_path / "seed-1"]
    for folder in folders:
        folder.mkdir()
    with start(tmp_path / "pool.py", POOL, *folders) as parent:
        assert [parent.stdout.readline() for _ in folders] == ["held\n", "held\n"]
        for folder in folders:
            assert (folder / "lock").read_text() != f"pid {parent.pid} on {socket.gethostname()}"
        parent.send_signal(signal.SIGKILL)
        for folder in folders:
            with RunFolder(folder).lock():  # waits for them, not for the 600 seconds that they would take
                pass
        assert parent.stdout.read() == ""  # the last of them has closed it


def test_the_same_command_in_the_same_project_is_refused_with_pid_and_host_and_another_one_is_not(tmp_path):
    holder = f"pid {os.getpid()} on {socket.gethostname()}"
    with locks.stage(tmp_path, "train --arm full", tmp_path / "runs"):
        refusal = re.escape(
            f"{tmp_path}: `rlanything train --arm full` runs here already ({holder}); wait for it"
        )
        with pytest.raises(ConfigError, match=refusal), locks.stage(tmp_path, "train --arm full"):
            pass
        with locks.stage(tmp_path, "train --arm policy"):
            pass
    with locks.stage(tmp_path, "train --arm full"):
        pass


def test_what_writes_the_inputs_of_another_command_is_refused_beside_it_and_so_the_other_way_round(
    tmp_path, monkeypatch
):
    """Real stages, which take their locks before any work."""
    monkeypatch.setattr(locks, "PATIENCE", 0.0)
    (tmp_path / "experiments").symlink_to(ROOT / "experiments")
    write_json(Layout(tmp_path).bootstrap, {})
    work: dict[str, Callable[[], None]] = {
        "tasks": partial(tasks.make_tasks, small(), tmp_path),
        "bootstrap": partial(stage.make_models, small(), tmp_path),
        "train --arm full": partial(train.train_arm, small(), tmp_path, "full"),
        "evaluate --arm full": partial(evaluate.evaluate_arm, small(), tmp_path, "full"),
    }
    for first, second in itertools.permutations(work, 2):
        refusal = f"`rlanything {second}` cannot run beside .*{first.replace(' ', '-')} .pid {os.getpid()} on"
        with locks.stage(tmp_path, first), pytest.raises(ConfigError, match=refusal):
            work[second]()
    with locks.stage(tmp_path, "train --arm policy", apart=("evaluate --arm policy",)):
        for other in ("train --arm full", "evaluate --arm full"):
            with locks.stage(tmp_path, other, apart=(*BEFORE_TRAINING, "train --arm full")):
                pass


def test_a_file_system_without_locks_is_refused(tmp_path, monkeypatch):
    def unsupported(file, how):
        raise OSError(38, "Function not implemented")

    monkeypatch.setattr(locks.fcntl, "flock", unsupported)
    with (
        pytest.raises(ConfigError, match=r"has no locks \(Function not implemented\)"),
        locks.stage(tmp_path, "tasks"),
    ):
        pass


@pytest.mark.slow
@pytest.mark.integration
@pytest.mark.timeout(3600)
def test_two_real_starts_at_once_and_a_kill_of_one_with_its_processes_end_with_the_same_bytes(
    tiny_project, tmp_path
):
    """Two seeds in processes of their own: held still while a second start is refused; then the parent is killed."""
    root = tmp_path / "project"
    subprocess.run(["cp", "-r", str(tiny_project), str(root)], check=True)
    compose.write(root / "params.yaml", [*SMALL, "train.seeds=2", "train.workers=2"], ROOT)
    command = [sys.executable, "-m", "rlanything", "--root", str(root), "train", "--arm", "full"]
    options = {"env": {**os.environ, "PYTHONPATH": str(ROOT)}, "stderr": subprocess.PIPE, "text": True}

    subprocess.run(command, check=True, **options)
    placed = Layout(root).run("full", 0).parent
    expected = contents(placed)
    placed.rename(tmp_path / "expected")

    with subprocess.Popen(command, start_new_session=True, **options) as first:
        next(line for line in first.stderr if "iteration 0/" in line)
        os.killpg(first.pid, signal.SIGSTOP)
        second = subprocess.run(command, check=False, **options)
        assert second.returncode == 2
        assert f"runs here already (pid {first.pid} on {socket.gethostname()})" in second.stderr
        first.send_signal(signal.SIGKILL)
        os.killpg(first.pid, signal.SIGCONT)
        third = subprocess.run(command, check=False, **options)
    assert third.returncode == 0, third.stderr
    assert "resuming after iteration" in third.stderr
    assert contents(placed) == expected
