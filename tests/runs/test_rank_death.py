"""One of two processes that share a run is killed: torchrun ends with its error, soon, and the next start goes on."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import golden_cases as golden
import psutil
import pytest
import yaml

from rlanything.core.errors import MachineError
from rlanything.loop import share
from rlanything.runs.layout import Layout

ARM = "full"
COMMAND = [
    "-m",
    "torch.distributed.run",
    "--standalone",
    "--nproc-per-node",
    "2",
    "-m",
    "rlanything",
    "train",
]
SOON_S = 60.0
"""The processes of a busy machine end in much less; torchrun alone would wait 30 s before it kills the others."""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    project = golden.project(tmp_path)
    data = golden.configuration(train__devices=2).model_dump(mode="json", by_alias=True)
    (project / "params.yaml").write_text(yaml.safe_dump(data))
    return project


def start(root: Path) -> subprocess.Popen[str]:
    settings = {**os.environ, "PYTHONPATH": str(golden.ROOT), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, *COMMAND, "--arm", ARM]
    return subprocess.Popen(
        command, cwd=root, env=settings, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    )


def ranks(launcher: subprocess.Popen[str]) -> dict[int, psutil.Process]:
    """The processes of a launch by their rank."""
    children = psutil.Process(launcher.pid).children(recursive=True)
    return {int(child.environ()["RANK"]): child for child in children if "RANK" in child.environ()}


def published(root: Path) -> int:
    return len(list(root.glob(".rla/live/*/full/seed-0/iterations/[0-9]*")))


def kill(root: Path, victim: int) -> str:
    """Start a run, and kill one of its processes once another iteration is published. What the launcher said."""
    before, launcher = published(root), start(root)
    try:
        deadline = time.monotonic() + 400
        while published(root) == before:
            assert launcher.poll() is None, launcher.communicate()[1][-3000:]
            assert time.monotonic() < deadline
            time.sleep(0.1)
        processes = ranks(launcher)
        processes[victim].kill()
        killed = time.monotonic()
        said = launcher.communicate(timeout=120)[1]
        assert time.monotonic() - killed < SOON_S
    finally:
        launcher.kill()
    assert launcher.returncode != 0
    assert not any(process.is_running() for process in processes.values()), "a process was left behind"
    return said


@pytest.mark.integration
@pytest.mark.timeout(900)
def test_a_killed_process_ends_the_run_with_its_error_and_the_next_start_goes_on(root):
    """First rank 1 is killed, then in the next start rank 0, which publishes. The third start ends the run."""
    for victim in (1, 0):
        said = kill(root, victim)
        cause = said.partition("Root Cause")[2]
        assert f"rank      : {victim} " in cause, said[-3000:]
        assert "SIGKILL" in cause
    done = start(root)
    assert done.wait(timeout=400) == 0, done.communicate()[1][-3000:]
    golden.check(ARM, golden.kept(Layout(root).run(ARM, 0)))


@pytest.mark.parametrize(
    ("text", "lost"),
    [
        ("[pair.cc:553] Connection closed by peer [127.0.0.1]:1 gloo/transport/tcp. GLHF", True),
        ("the matrix is singular", False),
    ],
)
def test_an_error_of_a_collective_says_that_another_process_is_gone(monkeypatch, text, lost):
    monkeypatch.setattr(share, "divided", lambda: True)
    with pytest.raises(MachineError if lost else RuntimeError) as caught, share.together():
        raise RuntimeError(text)
    assert ("another process of this run has ended" in str(caught.value)) is lost


def test_without_other_processes_an_error_stays_what_it_is():
    with pytest.raises(RuntimeError, match="gloo"), share.together():
        raise RuntimeError("gloo")


def test_a_process_that_shares_a_run_ends_at_once_on_sigterm_and_one_alone_as_lightning_says():
    from types import SimpleNamespace

    from rlanything.learn.callbacks import EndTogether

    before = signal.signal(signal.SIGTERM, signal.SIG_IGN)
    try:
        EndTogether().on_train_start(SimpleNamespace(world_size=1), None)
        assert signal.getsignal(signal.SIGTERM) is signal.SIG_IGN
        EndTogether().on_train_start(SimpleNamespace(world_size=2), None)
        assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
    finally:
        signal.signal(signal.SIGTERM, before)
