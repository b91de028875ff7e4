"""A process that fails ends all of them within seconds, whatever the others do; so does an interruption."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from array import array
from collections.abc import Iterator
from contextlib import contextmanager
from fcntl import ioctl
from multiprocessing.connection import Connection
from pathlib import Path
from termios import FIONREAD

import psutil
import pytest
from worker_cases import ROOT, double, endless, fails, stubborn, surroundings, unready

from rlanything.core.errors import ConfigError, MachineError
from rlanything.runs.workers import await_starter, beside, run_all

SECONDS = 30.0
"""More than a start of three processes takes on a busy machine, and far less than the 600 that a stubborn one would."""
IMPORTS = 120.0
"""More than the server takes to import. It ends afterwards, when it sees that nobody is there."""
PROGRAM = """
import sys
from pathlib import Path
from worker_cases import stubborn
from rlanything.runs.workers import run_all

if __name__ == "__main__":
    run_all(stubborn, [(Path(name),) for name in sys.argv[1:]], 2)
"""


@pytest.mark.parametrize(
    ("how", "error", "message"),
    [
        ("config", ConfigError, "the votes hold no verdict"),
        ("disk", OSError, "No space left on device: 'runs/full'"),
        ("unportable", RuntimeError, "Unportable: it is broken"),
        ("killed", MachineError, r"a worker process was killed \(SIGKILL\)"),
        ("exit", MachineError, "ended with exit code 3 before it answered"),
    ],
)
def test_a_failure_ends_the_others_at_once_with_its_own_message(tmp_path, how, error, message):
    await_starter()
    mark, begun = tmp_path / "mark", time.monotonic()
    with pytest.raises(error, match=message):
        run_all(fails, [("goes on", mark), (how, mark), ("never begun", mark)], 2)
    assert time.monotonic() - begun < SECONDS
    assert not psutil.pid_exists(int(mark.read_text()))


def test_a_process_that_is_killed_within_its_answer_is_one_clear_error():
    """A pipe holds less than the answer, so that the process waits for the one that reads."""
    with beside(endless) as child:
        while waiting(child.answer) < 1 << 12:
            time.sleep(0.01)
        child.kill()
        with pytest.raises(MachineError, match=r"a worker process was killed \(SIGKILL\)"):
            child.result()


def test_a_process_that_cannot_begin_is_one_clear_error(monkeypatch):
    monkeypatch.setitem(sys.modules, "no_module_of_this_name", sys.modules[unready.__module__])
    monkeypatch.setattr(unready, "__module__", "no_module_of_this_name")
    with pytest.raises(MachineError, match="ended with exit code 1"):
        run_all(unready, [(Path(),)], 1)


def test_the_error_says_where_in_the_other_process_it_came_from(tmp_path):
    (tmp_path / "mark").touch()
    with pytest.raises(ConfigError) as caught:
        run_all(fails, [("config", tmp_path / "mark")], 1)
    assert "in fails" in caught.value.__notes__[0]


def test_results_come_in_the_order_of_the_calls_whoever_is_first():
    assert run_all(double, [(n,) for n in range(3)], 2) == [0, 2, 4]


def test_a_process_has_the_variables_the_folder_and_the_output_of_the_moment(tmp_path, monkeypatch, capfd):
    """And not those of the server, which was started before."""
    given = next(iter(await_starter().variables - {"PATH", "OMP_NUM_THREADS"}))
    assert run_all(surroundings, [("SET_LATER",)], 1) == [(None, os.getcwd())]
    monkeypatch.setenv("SET_LATER", "yes")
    monkeypatch.delenv(given)
    monkeypatch.chdir(tmp_path)
    capfd.readouterr()
    assert run_all(surroundings, [("SET_LATER",)], 1) == [("yes", str(tmp_path))]
    assert capfd.readouterr().out == "heard yes\n"
    assert run_all(surroundings, [(given,)], 1) == [(None, str(tmp_path))]


def test_where_no_socket_can_be_made_processes_are_started_afresh(tmp_path):
    folder = tmp_path / ("long" * 25)
    folder.mkdir()
    program = "from worker_cases import double; from rlanything.runs.workers import await_starter, run_all\n"
    program += "if __name__ == '__main__': print(run_all(double, [(3,)], 1), await_starter().context)"
    (tmp_path / "program.py").write_text(program)
    environment = {**os.environ, "TMPDIR": str(folder), "PYTHONPATH": f"{ROOT}:{Path(__file__).parent}"}
    done = subprocess.run(
        [sys.executable, "program.py"],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.startswith("[6] <multiprocessing.context.SpawnContext")


def test_a_process_beside_the_block_is_gone_when_the_block_fails(tmp_path):
    mark = tmp_path / "mark"
    with pytest.raises(ZeroDivisionError), beside(stubborn, mark):
        int(wait_for(mark)) // 0
    assert not psutil.pid_exists(int(mark.read_text()))


@pytest.mark.long
@pytest.mark.parametrize("group", [True, False], ids=["as the terminal and dvc do", "the parent alone"])
@pytest.mark.parametrize("early", [True, False], ids=["while it imports", "at work"])
def test_an_interruption_ends_every_process_at_once(tmp_path, group, early):
    marks = [tmp_path / "one", tmp_path / "two"]
    with program(tmp_path / "program.py", PROGRAM, *marks) as parent:
        children = [server(parent.pid)] if early else [int(wait_for(mark)) for mark in marks]
        (os.killpg if group else os.kill)(parent.pid, signal.SIGINT)
        parent.wait(SECONDS)
        said = parent.communicate(timeout=IMPORTS)[1]
    assert "KeyboardInterrupt" in said
    assert said.count("Traceback") == 1, "only the one that was started says so"
    assert (
        psutil.wait_procs([psutil.Process(pid) for pid in children if psutil.pid_exists(pid)], IMPORTS)[1]
        == []
    )


@contextmanager
def program(script: Path, text: str, *words: object) -> Iterator[subprocess.Popen[str]]:
    """A script of its own process group, all of which is gone at the end."""
    script.write_text(text)
    environment = {**os.environ, "PYTHONPATH": f"{ROOT}:{Path(__file__).parent}"}
    command = [sys.executable, str(script), *map(str, words)]
    with subprocess.Popen(
        command, env=environment, stderr=subprocess.PIPE, text=True, start_new_session=True
    ) as process:
        try:
            yield process
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)


def server(parent: int) -> int:
    """The process that imports for all others, as soon as it is there."""
    while True:
        for child in psutil.Process(parent).children():
            if "forkserver" in " ".join(child.cmdline()):
                return child.pid
        time.sleep(0.002)


def waiting(pipe: Connection) -> int:
    """How many bytes lie in a pipe."""
    return array("i", ioctl(pipe, FIONREAD, bytes(4)))[0]


def wait_for(mark: Path) -> str:
    while not (mark.exists() and mark.read_text()):
        time.sleep(0.01)
    return mark.read_text()
