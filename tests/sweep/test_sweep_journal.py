"""The journal of a study outlives what a full disk and a power loss leave at its end."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from optuna.trial import TrialState
from sweep_cases import declared, make

from rlanything.core.errors import ConfigError
from rlanything.sweep.study.storage import JOURNAL

FULL = """
import resource, sys
from pathlib import Path
from sweep_cases import declared, make
board = make(declared(), Path(sys.argv[1]))
journal = Path(sys.argv[1]) / "study.journal"
size = journal.stat().st_size
resource.setrlimit(resource.RLIMIT_FSIZE, (size + 20, resource.RLIM_INFINITY))
try:
    board.study.ask()
except OSError as error:
    print(error.filename, size)
"""

OPENER = """
import sys
from pathlib import Path
from rlanything.sweep.study.journal import Journal
Journal(Path(sys.argv[1]))
"""

MOVED = """
import os, signal, sys
from pathlib import Path
from rlanything.sweep.study.journal import Journal
journal = Journal(Path(sys.argv[1]))
journal._lock.grace_period = 1
if sys.argv[2] == "killed":
    journal._lock.acquire()
    os.kill(os.getpid(), signal.SIGKILL)
journal.append_logs([{}])
"""


def grow(folder: Path) -> list[str]:
    """Ask for a trial and finish it; the states of all."""
    board = make(declared(), folder)
    trial = board.study.ask()
    board.study.tell(trial.number, [0.5], TrialState.COMPLETE)
    return [t.state.name for t in make(declared(), folder).study.trials()]


def test_a_write_that_the_disk_refused_leaves_the_journal_as_it_was(tmp_path):
    """The process may make the file 20 bytes longer, and a record has more."""
    path = os.pathsep.join([str(Path(__file__).parent), *sys.path])
    found = subprocess.run(
        [sys.executable, "-c", FULL, str(tmp_path)], env={**os.environ, "PYTHONPATH": path},
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    journal = tmp_path / JOURNAL
    assert found.stdout == f"{journal} {journal.stat().st_size}\n", found.stderr
    assert grow(tmp_path) == ["COMPLETE", "WAITING"]


@pytest.mark.parametrize("torn", [b'{"op_code":5,"work', b"\0" * 5000])
def test_half_a_record_of_a_power_loss_is_cut_off(tmp_path, torn):
    grow(tmp_path)
    with (tmp_path / JOURNAL).open("ab") as file:
        file.write(torn)
    assert grow(tmp_path) == ["COMPLETE", "COMPLETE"]
    assert grow(tmp_path) == ["COMPLETE"] * 3
    assert torn + b"{" not in (tmp_path / JOURNAL).read_bytes()


def test_half_a_record_that_comes_while_the_study_is_open_is_cut_off(tmp_path):
    board = make(declared(), tmp_path)
    with (tmp_path / JOURNAL).open("ab") as file:
        file.write(b'{"op_code":5,"work')
    first = board.study.ask()
    board.study.tell(first.number, [0.5], TrialState.COMPLETE)
    assert [t.state.name for t in make(declared(), tmp_path).study.trials()] == ["COMPLETE", "WAITING"]


def test_a_line_that_is_no_record_is_named(tmp_path):
    grow(tmp_path)
    lines = (tmp_path / JOURNAL).read_bytes().splitlines(keepends=True)
    lines[2] = b'{"op_code":5,"work{"op_code":5}\n'
    (tmp_path / JOURNAL).write_bytes(b"".join(lines))
    with pytest.raises(ConfigError, match=r"study\.journal:3: no record of a study .*put back a copy"):
        make(declared(), tmp_path)


def test_the_lock_of_a_killed_worker_is_broken_although_the_folder_was_moved(tmp_path):
    """Optuna watches the time stamp of the lock: one that it cannot read is never old enough."""
    old, new = tmp_path / "old", tmp_path / "new"
    old.mkdir()
    killed = subprocess.run([sys.executable, "-c", MOVED, str(old / JOURNAL), "killed"], check=False)
    assert killed.returncode == -signal.SIGKILL
    old.rename(new)
    assert len(list(new.iterdir())) == 2
    subprocess.run([sys.executable, "-c", MOVED, str(new / JOURNAL), "again"], check=True, timeout=30)
    assert (new / JOURNAL).read_text() == "{}\n"
    assert [path.name for path in new.iterdir()] == [JOURNAL]


@pytest.mark.long
def test_a_record_that_is_being_written_is_left_to_its_writer(tmp_path):
    """Whoever opens the study waits for the journal's lock before anything is cut off."""
    board = make(declared(), tmp_path)
    lock = board.study.storage._backend._lock
    lock.acquire()
    with (tmp_path / JOURNAL).open("ab") as file:
        file.write(b'{"op_code":5,"work')
    opener = subprocess.Popen([sys.executable, "-c", OPENER, str(tmp_path / JOURNAL)])
    with pytest.raises(subprocess.TimeoutExpired):
        opener.wait(timeout=4)
    assert (tmp_path / JOURNAL).read_bytes().endswith(b'"work')
    lock.release()
    assert opener.wait(timeout=60) == 0
    assert grow(tmp_path) == ["COMPLETE", "WAITING"]
