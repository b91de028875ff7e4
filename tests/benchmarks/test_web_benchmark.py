"""The speed of web pages beside other environments; the comparisons themselves need what those environments need."""

import os
import subprocess
import sys

import psutil
import pytest

from benchmarks.web import __main__ as command
from benchmarks.web.__main__ import browsergym, peer
from benchmarks.web.pace import rate
from envs.web.browser import launch
from rlanything.core.errors import MachineError


def test_a_rate_counts_the_steps_after_the_first():
    seen = iter(range(10**9))

    def steps():
        for _ in seen:
            yield

    found = rate(steps(), 0.05)
    assert 0 < found <= (next(seen) - 1) / 0.05


def test_a_python_without_browsergym_ends_the_comparison_with_its_command():
    try:
        launch.chromium(None), launch.pages(None)
    except MachineError as error:
        pytest.skip(str(error))
    with (
        browsergym(sys.executable, ()) as measure,
        pytest.raises(SystemExit, match=r"benchmarks\.web\.browsergym ended"),
    ):
        measure(0.1)


def test_a_process_that_ended_before_its_turn_ends_the_comparison_with_its_command():
    before = set(psutil.Process().children())
    with peer("gone", ["true"]) as measure:
        (child,) = set(psutil.Process().children()) - before
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)  # its exit code stays to be read
        with pytest.raises(SystemExit, match=r"^true ended without an answer"):
            measure(0.1)


def test_a_process_that_does_not_end_is_killed_with_those_that_it_started(monkeypatch):
    monkeypatch.setattr(command, "ENDS_S", 0.1)
    before = set(psutil.Process().children())
    with peer("hung", ["sh", "-c", "sleep 600 & echo '{\"whole\": 2.0}'; wait"]) as measure:
        assert measure(0.1) == {"hung": 2.0}
        (child,) = set(psutil.Process().children()) - before
        started = [child, *child.children()]
        assert len(started) == 2
    _gone, left = psutil.wait_procs(started, timeout=60)
    for process in left:
        process.kill()
    assert left == []


KILLED = """
import time
from benchmarks.web.__main__ import selenium
found = selenium(["click-test"])
if found is None:
    raise SystemExit("missing")
with found as measure:
    print(*measure(0.01), flush=True)
    time.sleep(600)
"""


def test_the_browser_of_a_comparison_that_is_killed_ends():
    try:
        launch.chromium(None)
    except MachineError as error:
        pytest.skip(str(error))
    with subprocess.Popen(
        [sys.executable, "-c", KILLED], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as asks:
        try:
            if asks.stdout.readline() != "selenium\n":
                said = asks.stderr.read()
                assert "is not measured" in said
                pytest.skip(said)
            started = psutil.Process(asks.pid).children(recursive=True)
            assert len(started) > 2  # Python, the driver, the browser
        finally:
            asks.kill()
    _gone, left = psutil.wait_procs(started, timeout=60)
    for process in left:
        process.kill()
    assert left == []
