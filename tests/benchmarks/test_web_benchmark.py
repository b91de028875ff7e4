"""The speed of web pages beside other environments; the comparisons themselves need what those environments need."""

import subprocess
import sys

import psutil
import pytest

from benchmarks.web.__main__ import browsergym
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
        if asks.stdout.readline() != "selenium\n":
            said = asks.stderr.read()
            assert "is not measured" in said
            pytest.skip(said)
        started = psutil.Process(asks.pid).children(recursive=True)
        assert len(started) > 2  # Python, the driver, the browser
        asks.kill()
    _gone, left = psutil.wait_procs(started, timeout=60)
    for process in left:
        process.kill()
    assert left == []
