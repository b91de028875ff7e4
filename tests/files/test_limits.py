"""A process that reads what may be anybody's has limits, and keeps lower ones that it was started with."""

import resource
import subprocess
import sys

import pytest

LIMITED = """
import resource, sys
from rlanything.files.limits import limit_process
limit_process(20, int(sys.argv[1]))
for kind in (resource.RLIMIT_CPU, resource.RLIMIT_CORE, resource.RLIMIT_AS):
    print(*resource.getrlimit(kind))
try:
    bytes(1 << 30)
except MemoryError:
    print("no memory")
"""


def limited(memory_mb: int, hard: int | None = None, **before: int) -> list[str]:
    """What a process, started with the limits `before`, says of its limits: CPU, core dumps, memory.

    The limits `before` are soft ones where `hard` is another.
    """
    done = subprocess.run(
        [sys.executable, "-c", LIMITED, str(memory_mb)],
        capture_output=True, text=True, check=True,
        preexec_fn=lambda: [
            resource.setrlimit(getattr(resource, name), (most, hard or most)) for name, most in before.items()
        ],
    )  # fmt: skip
    return done.stdout.splitlines()


@pytest.mark.skipif(sys.platform != "linux", reason="other systems do not limit memory")
def test_a_process_has_limits_that_it_cannot_raise():
    cpu, core, memory, said = limited(512)
    assert (cpu, core, said) == ("20 20", "0 0", "no memory")
    soft, hard = map(int, memory.split())
    assert 512 << 20 < soft == hard < 1 << 30


@pytest.mark.skipif(sys.platform != "linux", reason="other systems do not limit memory")
def test_lower_limits_that_it_was_started_with_stay():
    least = 600 << 20
    assert limited(4096, RLIMIT_CPU=7, RLIMIT_AS=least) == ["7 7", "0 0", f"{least} {least}", "no memory"]


def test_so_do_lower_soft_limits():
    assert limited(4096, hard=50, RLIMIT_CPU=7)[0] == "7 7"
