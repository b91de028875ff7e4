"""Which worker runs which trial: a claim holds while its worker or the worker's child lives, and no longer.

What ends between a look at the study and a claim is not run again."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from optuna.trial import TrialState
from sweep_cases import declared, make, play, write_results

from rlanything.sweep.trials.board import Board
from rlanything.sweep.trials.claims import Claims
from rlanything.sweep.trials.jobs import Job
from rlanything.sweep.trials.queue import JobQueue

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


class Late(Claims):
    """The claims of a worker that is slow: another one does `first` after the study was read and before a claim."""

    def __init__(self, folder: Path, first: Callable[[], None]) -> None:
        super().__init__(folder)
        self.first: Callable[[], None] | None = first

    def take(self, name: str) -> bool:
        first, self.first = self.first, None
        if first is not None:
            first()
        return super().take(name)


@pytest.fixture
def theirs(tmp_path) -> Claims:
    """Another worker's claims."""
    return Claims(tmp_path / "claims")


def take(board: Board, claims: Claims) -> Job | None:
    return JobQueue(board, claims, print).take([])


@pytest.mark.parametrize("state", [TrialState.COMPLETE, TrialState.FAIL])
def test_a_trial_that_another_worker_ends_in_the_last_instant_is_not_taken_over(tmp_path, theirs, state):
    board = make(declared(), tmp_path)
    job = take(board, theirs)

    def end() -> None:
        values = [0.5] if state == TrialState.COMPLETE else None
        board.study.tell(job.number, values, state)
        theirs.release(job.claim)

    late = Late(tmp_path / "claims", end)
    mine = take(make(declared(), tmp_path), late)
    assert late.first is None
    assert (job.number, mine.number) == (0, 1)
    assert list(late.mine) == [mine.claim]


def test_a_trial_whose_worker_is_gone_is_taken_over(tmp_path, theirs):
    board = make(declared(), tmp_path)
    job = take(board, theirs)
    theirs.release(job.claim)
    assert take(board, Claims(tmp_path / "claims")).number == job.number


@pytest.mark.parametrize("crashed", [False, True])
def test_fresh_seeds_that_another_worker_ends_in_the_last_instant_are_not_run_again(
    tmp_path, theirs, crashed
):
    sweep = declared(confirm=2, budget={"trials": 2})
    board = make(sweep, tmp_path)
    play(board, confirm=False)
    waiting = board.to_confirm()
    job = take(board, theirs)

    def end() -> None:
        if crashed:
            board.fresh.record_error(job.number, "out of memory")
        else:
            seeds = range(sweep.seeds + sweep.confirm)
            write_results(board.fresh.folder(job.number), sweep, board.sets(job.number), seeds)
        theirs.release(job.claim)

    late = Late(tmp_path / "claims", end)
    mine = take(make(sweep, tmp_path), late)
    assert late.first is None
    assert [job.number, mine.number] == waiting[:2]
    assert list(late.mine) == [mine.claim]
