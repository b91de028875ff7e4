"""One of two processes that share a run is killed: the other one ends, soon, and the next start goes on."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import redirect_stderr
from pathlib import Path

import golden_cases as golden
import psutil
import pytest
from golden_processes import with_params
from rank_cases import start_ranks, train, two_ranks, wait_for
from torch.multiprocessing import ProcessExitedException, ProcessRaisedException

from rlanything.core.errors import MachineError
from rlanything.loop import share
from rlanything.runs.folder import STATE, RunFolder
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
    return with_params(golden.project(tmp_path), train__devices=2)


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


def wait_until(root: Path, reached: int, alive: Callable[[], bool]) -> None:
    """Wait until so many iterations are published. The processes must be alive until then."""
    deadline = time.monotonic() + 400
    while published(root) < reached:
        assert alive(), "the run ended before it was killed"
        assert time.monotonic() < deadline
        time.sleep(0.1)


def kill(root: Path, victim: int) -> None:
    """Start a run with torchrun, and kill one of its processes once another iteration is published."""
    before, launcher = published(root), start(root)
    try:
        wait_until(root, before + 1, lambda: launcher.poll() is None)
        processes = ranks(launcher)
        processes[victim].kill()
        killed = time.monotonic()
        said = launcher.communicate(timeout=120)[1]
        assert time.monotonic() - killed < SOON_S
    finally:
        launcher.kill()
    assert launcher.returncode != 0
    assert not any(process.is_running() for process in processes.values()), "a process was left behind"
    cause = said.partition("Root Cause")[2]
    assert f"rank      : {victim} " in cause, said[-3000:]
    assert "SIGKILL" in cause


@pytest.mark.long
@pytest.mark.integration
@pytest.mark.timeout(900)
def test_a_killed_process_ends_the_run_with_its_error_and_the_next_start_goes_on(root):
    """First torchrun's rank 0 is killed, which publishes, then rank 1 of two processes without torchrun."""
    kill(root, 0)
    before, run = published(root), start_ranks(root, train, ARM)
    try:
        wait_until(root, before + 1, lambda: all(process.is_alive() for process in run.processes))
        os.kill(run.pids()[1], signal.SIGKILL)
        killed = time.monotonic()
        with pytest.raises((ProcessExitedException, ProcessRaisedException)):
            wait_for(run)
        assert time.monotonic() - killed < SOON_S
    finally:
        for process in run.processes:
            process.kill()
    two_ranks(root, train, ARM)
    golden.check(ARM, golden.kept(Layout(root).run(ARM, 0)))


def dying(killed_at: int | None) -> Callable[..., None]:
    """`RunFolder.publish` of a process that is killed before it publishes an iteration."""
    publish = RunFolder.publish

    def killed(folder: RunFolder, iteration: int, write: Callable[[Path], None]) -> None:
        if iteration == killed_at:
            os.kill(os.getpid(), signal.SIGKILL)
        publish(folder, iteration, write)

    return killed


def trusting(arm: str, killed_at: int | None) -> None:
    """One of two processes, of which the second one checks no file."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(RunFolder, "publish", dying(killed_at))
        if os.environ["RANK"] == "1":
            patch.delattr(RunFolder, "usable")
        train(arm)


@pytest.mark.long
@pytest.mark.integration
def test_the_first_process_alone_finds_a_damaged_checkpoint_and_all_go_on_before_it(root):
    with pytest.raises((ProcessExitedException, ProcessRaisedException)):
        two_ranks(root, trusting, ARM, 2)
    assert published(root) == 2
    (last,) = root.glob(f".rla/live/*/full/seed-0/iterations/0001/{STATE}")
    data = bytearray(last.read_bytes())
    data[len(data) // 2] ^= 1
    last.write_bytes(data)
    two_ranks(root, trusting, ARM, None)
    golden.check(ARM, golden.kept(Layout(root).run(ARM, 0)))


def blind(arm: str, killed_at: int | None) -> None:
    """One of two processes. The first is killed before it publishes an iteration; the second one never finds any."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(RunFolder, "publish", dying(killed_at))
        if os.environ["RANK"] == "1":
            patch.setattr(RunFolder, "state_file", lambda *_: Path("nowhere"))
        with Path(f"said-{os.environ['RANK']}").open("w") as said, redirect_stderr(said):
            train(arm)


@pytest.mark.long
@pytest.mark.integration
def test_processes_that_go_on_from_different_iterations_end_before_anything_is_mixed(root):
    with pytest.raises((ProcessExitedException, ProcessRaisedException)):
        two_ranks(root, blind, ARM, 1)
    assert published(root) == 1
    with pytest.raises((ProcessExitedException, ProcessRaisedException)):
        two_ranks(root, blind, ARM, None)
    said = "".join(path.read_text() for path in root.glob("said-*"))
    assert re.search(
        r"nowhere: the processes of this run are not at the same place: rank 0 goes on from it", said
    )
    assert published(root) == 1


@pytest.mark.slow
@pytest.mark.integration
@pytest.mark.timeout(900)
def test_torchrun_ends_with_the_error_of_whichever_process_is_killed_and_starts_again(root):
    for victim in (1, 0):
        kill(root, victim)
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
