"""Which worker runs which trial: a claim holds while its worker or the worker's child lives, and no longer."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from rlanything.sweep.trials.claims import Claims

OTHER = """
import subprocess, sys, time
from pathlib import Path
from rlanything.sweep.trials.claims import Claims
claims = Claims(Path(sys.argv[1]))
assert claims.take("trial-0000")
child = None
if sys.argv[2] == "with child":
    words = [sys.executable, "-c", "import sys; sys.stdin.read()"]
    child = subprocess.Popen(words, pass_fds=claims.descriptors("trial-0000", "inputs"))
print("taken", flush=True)
time.sleep(600)
"""


def other(folder: Path, *more: str) -> subprocess.Popen[str]:
    """Another worker, which has the claim."""
    words = [sys.executable, "-c", OTHER, str(folder), *more]
    found = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert found.stdout is not None
    assert found.stdout.readline() == "taken\n"
    return found


@pytest.fixture
def holder(tmp_path):
    found = other(tmp_path, "alone")
    yield found
    found.kill()
    found.wait()


def test_a_claim_is_taken_once(tmp_path, holder):
    claims = Claims(tmp_path)
    assert claims.is_taken("trial-0000")
    assert not claims.take("trial-0000")
    assert not claims.is_taken("trial-0001")
    assert claims.take("trial-0001")
    assert not claims.take("trial-0001")


def test_a_claim_ends_with_its_worker(tmp_path, holder):
    claims = Claims(tmp_path)
    holder.kill()
    holder.wait()
    assert not claims.is_taken("trial-0000")
    assert claims.take("trial-0000")


def test_a_claim_lasts_while_the_child_of_a_killed_worker_runs(tmp_path):
    """The child ends when its standard input does, which this process holds open."""
    claims, worker = Claims(tmp_path), other(tmp_path, "with child")
    worker.kill()
    worker.wait()
    assert claims.is_taken("trial-0000")
    assert worker.stdin is not None
    worker.stdin.close()
    assert worker.stdout is not None
    worker.stdout.read()  # the child has it open too, until its end
    assert claims.take("trial-0000")


def test_a_released_claim_can_be_taken_although_a_child_inherited_it(tmp_path):
    first, second = Claims(tmp_path), Claims(tmp_path)
    assert first.take("trial-0000")
    words = [sys.executable, "-c", "import sys; sys.stdin.read()"]
    child = subprocess.Popen(words, stdin=subprocess.PIPE, pass_fds=first.descriptors("trial-0000"))
    try:
        assert not second.take("trial-0000")
        first.release("trial-0000")
        assert second.take("trial-0000")
        first.release("trial-0000")  # no longer its own
        assert second.is_taken("trial-0000")
    finally:
        child.kill()
        child.wait()
