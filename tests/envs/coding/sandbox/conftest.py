"""Sandboxes for the tests: one pool per back end and module; what is missing is skipped with what would help."""

import pytest

from envs.coding.sandbox import Limits, SandboxError, open_sandbox

LIMITS = Limits(cpu_s=1, wall_s=3, memory_mb=256, output_kb=256, file_mb=4, disk_mb=16, files=500)


def opened(backend, workers=1, **options):
    """A sandbox, or a skip that says what is missing."""
    options.setdefault("limits", LIMITS)
    try:
        return open_sandbox(backend, workers=workers, **options)
    except SandboxError as error:
        pytest.skip(f"{backend}: {error}")


@pytest.fixture(scope="module")
def bwrap():
    with opened("bwrap") as box:
        yield box


@pytest.fixture(scope="module")
def plain():
    with opened("subprocess", trusted=True) as box:
        yield box


@pytest.fixture(scope="module", params=["bwrap", "subprocess"])
def box(request):
    with opened(request.param, trusted=request.param == "subprocess") as opened_box:
        yield opened_box
