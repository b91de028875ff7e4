"""An iteration is published whole or not at all, by one process at a time."""

from __future__ import annotations

import errno
import os
import shutil
import signal
import socket
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from stage_cases import buffer, contents, lines, write_iteration

from rlanything.buffer import TaskBuffer, read_events, read_snapshot, write_snapshot
from rlanything.buffer.model import Lineage, Version
from rlanything.core.errors import ConfigError
from rlanything.core.types import Direction, Task
from rlanything.files.manifest import NAME
from rlanything.runs import folder as run_folder
from rlanything.runs.folder import STATE, RunFolder, place
from rlanything.stages.solving import accepted_tasks

HERE = Path(__file__).parent
DIES = """
import os, signal, sys
from pathlib import Path
sys.path.insert(0, sys.argv[2])
from stage_cases import write_iteration
from rlanything.runs.folder import RunFolder

def write(folder):
    write_iteration(folder, 2)
    os.kill(os.getpid(), signal.SIGKILL)

RunFolder(Path(sys.argv[1])).publish(2, write)
"""
HOLDS = """
import sys
from pathlib import Path
from rlanything.runs.folder import RunFolder

with RunFolder(Path(sys.argv[1])).lock():
    print("held", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def folder(tmp_path) -> RunFolder:
    """Two published iterations."""
    made = RunFolder(tmp_path / "run")
    assert made.recover(print) == 0
    for k in range(2):
        made.publish(k, lambda path, k=k: write_iteration(path, k))
    return made


def test_published_iterations_are_there_in_order_and_the_last_two_keep_their_state(folder):
    folder.publish(2, lambda path: write_iteration(path, 2))
    assert [p.name for p in folder.published()] == ["0000", "0001", "0002"]
    assert [row["iteration"] for row in folder.metrics()] == [0, 1, 2]
    assert sorted(folder.iterations.glob(f"*/{STATE}")) == [folder.state_file(1), folder.state_file(2)]
    assert folder.buffer(2).digest == buffer().digest


def test_other_names_are_no_iterations(folder):
    for name in ("0000.bak", "00001", "2", "old"):
        shutil.copytree(folder.iterations / "0000", folder.iterations / name)
    assert [p.name for p in folder.published()] == ["0000", "0001"]
    assert folder.recover(pytest.fail) == 2


def test_a_file_beside_the_iterations_is_left_alone(folder):
    found = folder.iterations / ".DS_Store"
    found.write_bytes(b"of a file manager")
    assert folder.recover(pytest.fail) == 2
    assert found.is_file()


def test_a_fresh_run_has_nothing_to_go_on_from(tmp_path):
    assert RunFolder(tmp_path).recover(pytest.fail) == 0


def test_a_kill_between_writing_and_renaming_leaves_the_iteration_before_usable(folder):
    before = contents(folder.iterations)
    done = subprocess.run([sys.executable, "-c", DIES, str(folder.path), str(HERE)], check=False)
    assert done.returncode == -signal.SIGKILL
    assert (folder.iterations / ".tmp-0002" / STATE).is_file()
    assert folder.recover(print) == 2
    assert contents(folder.iterations) == before
    folder.publish(2, lambda path: write_iteration(path, 2))
    assert folder.state_file(2).read_bytes() == b"state 2"


def test_an_older_state_that_a_kill_left_behind_is_not_resumed_and_goes_with_the_next_iteration(folder):
    folder.publish(2, lambda path: write_iteration(path, 2))
    stale = folder.state_file(0)
    stale.write_bytes(b"not what it was")
    assert folder.recover(pytest.fail) == 3
    folder.publish(3, lambda path: write_iteration(path, 3))
    assert not stale.exists()


def test_a_half_written_folder_of_the_same_iteration_does_not_mix_into_it(folder):
    leftover = folder.iterations / ".tmp-0002"
    leftover.mkdir()
    (leftover / "old.json").write_text("{}")
    folder.publish(2, lambda path: write_iteration(path, 2))
    assert not (folder.iterations / "0002" / "old.json").exists()


def test_everything_is_synced_before_it_is_renamed(folder, monkeypatch):
    order: list[str] = []
    sync, rename = os.fsync, Path.rename
    monkeypatch.setattr(
        os, "fsync", lambda fd: (order.append(Path(os.readlink(f"/proc/self/fd/{fd}")).name), sync(fd))[1]
    )
    monkeypatch.setattr(Path, "rename", lambda old, new: (order.append("rename"), rename(old, new))[1])
    folder.publish(2, lambda path: (path / STATE).write_bytes(b"x"))
    assert order == [NAME, STATE, ".tmp-0002", "rename", "iterations"]


def test_a_full_disk_raises_and_keeps_what_is_published(folder, monkeypatch):
    before = contents(folder.iterations)

    def full(fd: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        folder.publish(2, lambda path: write_iteration(path, 2))
    monkeypatch.undo()
    assert folder.recover(print) == 2
    assert contents(folder.iterations) == before


def test_a_second_process_is_refused_with_the_pid_and_host_of_the_first(tmp_path, monkeypatch):
    monkeypatch.setattr(run_folder, "ORPHANS", 0.2)
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLDS, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        assert holder.stdout.readline() == "held\n"
        named = f"another process trains here \\(pid {holder.pid} on {socket.gethostname()}\\)"
        with pytest.raises(ConfigError, match=named), RunFolder(tmp_path).lock():
            pass
    finally:
        holder.kill()
        holder.communicate()
    with RunFolder(tmp_path).lock():
        assert (tmp_path / "lock").read_text() == f"pid {os.getpid()} on {socket.gethostname()}"
    assert (tmp_path / "lock").read_text() == ""


def test_a_lock_is_free_again_after_an_error(tmp_path):
    folder = RunFolder(tmp_path)
    with pytest.raises(ZeroDivisionError), folder.lock():
        raise ZeroDivisionError
    with folder.lock():
        pass


def export(folder: RunFolder) -> None:
    folder.export(buffer(), lambda path: (path / "model.bin").write_bytes(b"weights"))


def test_a_finished_run_holds_every_iteration_and_what_was_added_to_it(folder):
    export(folder)
    assert [row["iteration"] for row in lines(folder.finished / "metrics.jsonl")] == [0, 1]
    for k in range(3):
        assert read_snapshot(folder.finished / "buffer" / f"iter_{k:04d}.jsonl").digest == buffer().digest
    assert read_events(folder.finished / "buffer" / "events.jsonl").events == ()
    assert (folder.finished / "rollouts" / "iter_0002.jsonl.gz").read_bytes() == b"rollouts 1"
    assert (folder.finished / "model.bin").read_bytes() == b"weights"
    assert not list(folder.path.glob(".tmp-*"))


def test_an_export_that_fails_leaves_no_finished_run(folder):
    with pytest.raises(ZeroDivisionError):
        folder.export(buffer(), lambda path: 1 // 0)
    assert not folder.finished.exists()
    export(folder)
    assert folder.finished.is_dir()


def test_finished_runs_are_placed_together_over_whatever_was_there(folder, tmp_path):
    target = tmp_path / "runs" / "full"
    for old in (target / "seed-0" / "old", target / "seed-7", target.with_name(".tmp-full") / "leftover"):
        old.mkdir(parents=True)
    export(folder)
    place([folder], target)
    assert contents(target / folder.path.name) == contents(folder.finished)
    assert [p.name for p in target.iterdir()] == [folder.path.name]
    assert [p.name for p in target.parent.iterdir()] == ["full"]


def test_placing_that_fails_half_way_keeps_the_runs_that_were_there(folder, tmp_path, monkeypatch):
    target = tmp_path / "runs" / "full"
    export(folder)
    place([folder], target)
    before = contents(target.parent)

    def full(source, to):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("shutil.copy2", full)
    with pytest.raises(OSError, match=r"No space left on device: .*buffer"):
        place([folder], target)
    assert contents(target.parent) == before


def test_an_iteration_is_published_once(folder):
    before = contents(folder.iterations)
    with pytest.raises(FileExistsError, match="published already"):
        folder.publish(1, lambda path: write_iteration(path, 1))
    assert contents(folder.iterations) == before


def test_a_finished_run_is_not_exported_again(folder):
    export(folder)
    folder.export(buffer(), lambda path: pytest.fail("it was there"))


def test_the_accepted_tasks_of_a_run_are_found_in_what_it_exports_each_once(tmp_path):
    """Two iterations, and the epoch after them. Two slots have accepted one task, one of them long ago.

    A task that was replaced since is among them.
    """
    iterations, run = 2, RunFolder(tmp_path / "run")
    run.recover(pytest.fail)
    old, second, *others = buffer().lineages
    new = Version(1, Task("game", "do another thing", {}), iterations, 0.0, 0.5, Direction.EASIER)
    first = replace(new, iteration=0)
    between, last = (replace(new, number=n, task=Task("game", f"do thing {n}", {})) for n in (2, 3))
    grown = TaskBuffer(
        (
            Lineage(old.slot, (*old.versions, new)),
            Lineage(second.slot, (*second.versions, first, between, last)),
            *others,
        )
    )

    def write(path: Path, k: int) -> None:
        write_iteration(path, k)
        if k == iterations:
            write_snapshot(grown, path / "buffer.jsonl")

    for k in range(iterations + 1):
        run.publish(k, lambda path, k=k: write(path, k))
    run.export(buffer(), lambda path: None)
    assert accepted_tasks(run.finished, iterations) == [new.task, between.task, last.task]
