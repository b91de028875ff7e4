"""A server that is lost in the middle of the work is started again, and the answers are the same bytes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from served_cases import FAKE, REQUESTS, gone, pids, wait_until

from rlanything.core.errors import MachineError, UserError
from rlanything.engines.vllm.probe import WeightsMismatch


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


def test_a_server_that_hangs_is_ended(opened, faults, capfd):
    engine = opened(request_s=4)
    expected = engine.generate(REQUESTS)
    (faults / "1-hang").touch()
    assert engine.generate(REQUESTS) == expected
    assert "no whole answer within 4 s" in capfd.readouterr().err


def test_too_many_losses_end_the_run_with_the_servers_last_words(opened, faults):
    engine = opened(restarts=1)
    engine.generate(REQUESTS[:1])
    (faults / "1-die").touch()
    (faults / "2-die").touch()
    with pytest.raises(
        MachineError, match=r"(?s)engine\.restarts = 1: .*out of memory, says the fake.*exit code 7"
    ):
        engine.generate(REQUESTS)
    wait_until(lambda: all(gone(group) for group in pids(faults)))
    engine.generate(REQUESTS)  # whoever caught it can go on: everything starts anew


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


SCRIPT = """
import os, sys, time
import torch
import engine_cases as cases
from rlanything.core.types import Request
from rlanything.engines.vllm import support
from rlanything.engines.vllm.served.engine import VllmServers

support.version = lambda: support.VERSION
engine = VllmServers(cases.qwen2(), cases.tokenizer(), tolerance=1e9, folder=sys.argv[2])
engine._program = [sys.executable, sys.argv[1]]
engine.generate([Request((5, 6), 0, 4)])
print("ready", flush=True)
time.sleep(600)
"""


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
def test_servers_end_with_the_process_that_asked(faults, tmp_path, how):
    weights = tmp_path / "weights"
    weights.mkdir()
    tests, root = Path(__file__).parents[1], Path(__file__).parents[3]
    paths = os.pathsep.join([str(tests), str(root), os.environ.get("PYTHONPATH", "")])
    asking = subprocess.Popen(
        [sys.executable, "-c", SCRIPT, str(FAKE), str(weights)],
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": paths},
    )
    assert asking.stdout is not None
    assert asking.stdout.readline() == b"ready\n"
    (group,) = pids(faults)
    assert not gone(group)
    assert list(weights.iterdir())
    os.kill(asking.pid, how)
    asking.wait()
    asking.stdout.close()
    wait_until(lambda: gone(group))
    wait_until(lambda: not list(weights.iterdir()))


def test_a_servers_children_end_when_it_is_killed_alone(opened, faults):
    """vLLM's own processes stay when the one that listens is killed."""
    engine = opened()
    expected = engine.generate(REQUESTS)
    (group,) = pids(faults)
    os.kill(group[0], signal.SIGKILL)
    wait_until(lambda: gone(group))
    assert engine.generate(REQUESTS) == expected
