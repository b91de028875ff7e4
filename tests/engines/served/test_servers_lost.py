"""A server that is lost in the middle of the work is started again, and the answers are the same bytes."""

from __future__ import annotations

import multiprocessing
import os
import signal
import socket
import subprocess
import sys
import tempfile
import uuid
from collections.abc import Callable, Iterator
from multiprocessing.process import BaseProcess
from pathlib import Path

import engine_cases as cases
import pytest
import torch
from fake_vllm import TROUBLE
from rank_cases import preload
from served_cases import FAKE, REQUESTS, ask_and_stay, gone, listening, pids, wait_until

from rlanything.core.errors import MachineError, UserError
from rlanything.engines.vllm.instance import save_config
from rlanything.engines.vllm.probe import WeightsMismatch
from rlanything.engines.vllm.served import keeper
from rlanything.engines.vllm.served.store import Store

TROUBLED = next(request for request in REQUESTS if request.seed == TROUBLE)


@pytest.mark.long
@pytest.mark.parametrize(
    ("fault", "words"),
    [
        ("die", "out of memory, says the fake"),
        ("drop", "disconnected"),
        ("500", "HTTP 500: no"),
        ("garbage", "the answer is no JSON"),
        ("deep", "a server of vLLM was lost: /inference/v1/generate: the answer is nested too deeply"),
        ("short", "6 ids with 5 log-probs"),
        ("formless", "an answer of another form"),
        ("aborted", "an answer that was broken off after 4 of 6 tokens"),
        ("renamed", "'of another program' are the weights that sampled"),
    ],
)
def test_lost_answers_are_asked_again_with_the_same_bytes(opened, faults, capfd, fault, words):
    engine = opened()
    expected = engine.generate(REQUESTS)
    (faults / f"1-{fault}").touch()
    assert engine.generate(REQUESTS) == expected
    told = capfd.readouterr().err
    assert words in told
    assert "requests are asked again, because a server of vLLM was lost" in told
    (first, second) = pids(faults)
    wait_until(lambda: gone(first))
    engine.close()
    wait_until(lambda: gone(second))


@pytest.mark.long
def test_a_server_that_hangs_is_ended(opened, faults, capfd):
    engine = opened(request_s=4)
    expected = engine.generate(REQUESTS)
    (faults / "1-hang").touch()
    assert engine.generate(REQUESTS) == expected
    assert "no request was answered for 4 s, and 1 wait" in capfd.readouterr().err


def test_a_busy_server_that_answers_one_request_after_the_other_is_not_taken_for_hung(
    opened, tmp_path, capfd
):
    """The last ones wait longer than a server may be silent."""
    model = cases.qwen2()
    save_config(model, tmp_path / "started")
    with listening(tmp_path / "started") as (address, fake):
        engine = opened(model, addresses=[address], request_s=5, restarts=0)
        expected = engine.generate(REQUESTS)
        fake.pace_s = 6 / len(REQUESTS)
        assert engine.generate(REQUESTS) == expected
    assert "was lost" not in capfd.readouterr().err


def test_too_many_losses_end_the_run_with_the_servers_last_words(opened, faults):
    engine = opened(restarts=1)
    engine.generate(REQUESTS[:1])
    (faults / "1-die").touch()
    (faults / "2-die").touch()
    with pytest.raises(
        MachineError,
        match=r"(?s)engine\.restarts = 1: .* with no answer in between.*out of memory, says the fake.*exit code 7",
    ):
        engine.generate([TROUBLED])
    wait_until(lambda: all(gone(group) for group in pids(faults)))
    engine.generate(REQUESTS)  # whoever caught it can go on: everything starts anew


def test_losses_with_answers_between_them_do_not_end_the_run(opened, faults, capfd):
    engine = opened(restarts=1)
    expected = engine.generate(REQUESTS)
    for number in range(3):
        (faults / f"{number}-500").touch()
        assert engine.generate(REQUESTS) == expected
    assert capfd.readouterr().err.count("was lost: ") == 3


def test_weights_that_another_program_gives_end_the_run_also_with_answers_between(opened, faults):
    """Two trainings that share a server would take away each other's weights for ever."""
    engine = opened(restarts=1)
    engine.generate(REQUESTS)
    (faults / "1-renamed").touch()
    engine.generate(REQUESTS)
    (faults / "2-renamed").touch()
    with pytest.raises(MachineError, match=r"engine\.restarts = 1: .*'of another program' are the weights"):
        engine.generate(REQUESTS)


def test_a_refusal_is_not_asked_again(opened, faults):
    engine = opened()
    engine.generate(REQUESTS[:1])
    (faults / "1-403").touch()
    with pytest.raises(MachineError, match="HTTP 403: no; start it with --enable-scale-out"):
        engine.generate(REQUESTS)
    assert len(pids(faults)) == 1


def test_a_server_that_cannot_start_says_why(opened):
    engine = opened()
    engine._program = [sys.executable, "-S", "-c", "print('no such kernel'); raise SystemExit(3)"]
    with pytest.raises(
        UserError, match=r"(?s)cannot run this model here; .*no such kernel.*ended with exit code 3"
    ):
        engine.generate(REQUESTS)


CORE = "(EngineCore pid=12) ERROR 11-27 17:03:49 [core.py:1510] "
"""How vLLM 0.32 begins a line of its inner process."""
LATE = f"""
print({CORE + "  raise ValueError('x')"!r}, {CORE + "torch.OutOfMemoryError: CUDA out of memory."!r}, sep="\\n")
print(*range(60), "RuntimeError: See root cause above.", sep="\\n")
raise SystemExit(1)
"""


def test_the_cause_is_shown_that_lies_far_above_the_end_of_the_log(opened):
    engine = opened()
    engine._program = [sys.executable, "-S", "-c", LATE]
    with pytest.raises(UserError) as caught:
        engine.generate(REQUESTS)
    lines = str(caught.value).splitlines()
    assert lines[1] == f"    | {CORE}torch.OutOfMemoryError: CUDA out of memory."
    assert [line for line in lines if "x" in line] == ["    | the server ended with exit code 1"]
    assert len(lines) == 22


@pytest.mark.long
def test_a_server_that_is_never_up_is_given_up(opened, capfd):
    engine = opened(start_s=0.5, restarts=1)
    engine._program = [sys.executable, "-S", "-c", "import time; time.sleep(60)"]
    with pytest.raises(MachineError, match=r"not up after 0\.5 s"):
        engine.generate(REQUESTS)
    assert "it is brought up again, because a server of vLLM was lost" in capfd.readouterr().err


def test_nothing_runs_on_with_weights_that_are_not_the_trainers(opened, faults):
    engine = opened(tolerance=None)
    with pytest.raises(WeightsMismatch, match="does not have the trainer's weights"):
        engine.generate(REQUESTS)
    wait_until(lambda: all(gone(group) for group in pids(faults)))


@pytest.fixture
def asking(faults, tmp_path) -> Iterator[Callable[..., BaseProcess]]:
    """Starts processes that have asked servers, and write weights to the folder `weights`.

    They are forked from a server that has imported what takes longer than all that they do."""
    weights = tmp_path / "weights"
    weights.mkdir()
    started = []

    def start(*addresses: str) -> BaseProcess:
        preload()
        context = multiprocessing.get_context("forkserver")
        here, there = context.Pipe(duplex=False)
        process = context.Process(target=ask_and_stay, args=(there.send, faults, weights, addresses))
        process.start()
        started.append(process)
        there.close()
        assert here.recv() == "ready"
        assert list(weights.iterdir())
        return process

    yield start
    for process in started:
        process.kill()
        process.join()


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
def test_servers_end_with_the_process_that_asked(asking, faults, tmp_path, how):
    process = asking()
    (group,) = pids(faults)
    assert not gone(group)
    os.kill(process.pid, how)
    process.join()
    wait_until(lambda: gone(group))
    wait_until(lambda: not list((tmp_path / "weights").iterdir()))


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
def test_weights_for_given_servers_go_with_the_process_that_asked(asking, tmp_path, how):
    save_config(cases.qwen2(), tmp_path / "started")
    with listening(tmp_path / "started") as (address, _):
        process = asking(address)
        os.kill(process.pid, how)
        process.join()
        wait_until(lambda: not list((tmp_path / "weights").iterdir()))


def test_when_a_second_server_cannot_start_the_first_is_ended(opened, faults, tmp_path):
    once = (  # both start at the same time, and the second waits until the first has begun
        "import os, sys, time, pathlib\n"
        "one = pathlib.Path(sys.argv[1])\n"
        "try: one.touch(exist_ok=False)\n"
        "except FileExistsError:\n"
        "    while not list(pathlib.Path(sys.argv[2]).glob('pids-*')): time.sleep(0.05)\n"
        "    raise SystemExit('no memory is left')\n"
        "os.execv(sys.executable, [sys.executable, *sys.argv[3:]])"
    )
    engine = opened(replicas=2, folder=str(tmp_path))
    engine._program = [sys.executable, "-S", "-c", once, str(tmp_path / "one"), str(faults.parent), str(FAKE)]
    with pytest.raises(UserError, match="no memory is left"):
        engine.generate(REQUESTS)
    (first,) = pids(faults)
    wait_until(lambda: gone(first))
    assert not list(tmp_path.glob("rlanything-vllm-*"))


@pytest.mark.parametrize("part", ["engine.Server", "store.save_config"])
def test_a_start_that_fails_leaves_no_folder(opened, monkeypatch, tmp_path, part):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(f"rlanything.engines.vllm.served.{part}", full)
    with pytest.raises(OSError, match="No space left"):
        opened().generate(REQUESTS)
    assert not list(tmp_path.glob("rlanything-vllm-*"))


@pytest.mark.parametrize("length", [32, 33, 40])
def test_vllms_own_sockets_fit_into_the_folder_of_a_server(monkeypatch, length):
    """They are named by a UUID. Where the folder of temporary files has a long name, another one is used."""
    with tempfile.TemporaryDirectory(dir="/tmp") as short:
        place = Path(short, "x" * (length - len(short) - 1))
        place.mkdir()
        monkeypatch.setattr(tempfile, "tempdir", str(place))
        store = Store(cases.qwen2(), torch.float32, None)
        folder = store.processes / "server99" / "999"
        folder.mkdir(parents=True)
        with socket.socket(socket.AF_UNIX) as own:
            own.bind(str(folder / str(uuid.uuid4())))
        store.close()
        assert not store.processes.exists()


def test_a_servers_children_end_when_it_is_killed_alone(opened, faults):
    """vLLM's own processes stay when the one that listens is killed."""
    engine = opened()
    expected = engine.generate(REQUESTS)
    (group,) = pids(faults)
    os.kill(group[0], signal.SIGKILL)
    wait_until(lambda: gone(group))
    assert engine.generate(REQUESTS) == expected


@pytest.mark.parametrize(
    ("command", "says"),
    [
        ("kill -s 40 $$", "was killed by signal 40"),
        ("kill -s KILL $$", "was killed by SIGKILL"),
        ("exit 3", "code 3"),
    ],
)
def test_the_process_that_stands_between_says_how_the_server_ended(command, says):
    words = [sys.executable, "-m", keeper.__name__, "bash", "-c", command]
    with subprocess.Popen(
        words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True
    ) as process:
        assert process.stdout is not None
        told = process.stdout.read().decode()
    assert told.startswith("the server ")
    assert told.endswith(f"{says}\n")
