"""The speed of web pages beside other environments; the comparisons themselves need what those environments need."""

import sys

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
