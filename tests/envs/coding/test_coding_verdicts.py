"""What a batch of verdicts runs, and what it holds in memory meanwhile."""

from __future__ import annotations

import tracemalloc

import pytest

from envs.coding.family import CodingFamily
from envs.coding.problem import Case, Problem
from envs.coding.program_judge import ProgramJudge
from envs.coding.sandbox import Status

PRINTED = 500_000
"""Characters; a test of the sandbox may print about a million."""
MOST = 8 * PRINTED
"""Bytes: what a few tests print, whose reports are under way."""


@pytest.mark.long
def test_what_programs_print_is_not_kept_until_the_batch_ends(family: CodingFamily) -> None:
    problem = Problem.from_task(family.make("train", 1, 0)[0])
    noise = "import sys\nprint('x' * {0} + '{1}')\nsys.stderr.write('x' * {0})"
    work = [(problem, noise.format(PRINTED, k), problem.cases) for k in range(10)]
    verdicts = ProgramJudge(family.sandbox)
    verdicts.judge([(problem, noise.format(PRINTED, "first"), problem.cases)])
    tracemalloc.start()
    found = verdicts.judge(work)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert {verdict.status for verdict in found} == {Status.WRONG}
    assert peak < MOST < PRINTED * sum(len(verdict.outcomes) for verdict in found) / 4


def test_tests_of_an_input_share_a_run_wherever_they_stand(family: CodingFamily) -> None:
    problem = Problem("Say it again.", (Case("1", "1"),))
    cases = [Case("1", "no"), Case("2", "2"), Case("1", "1"), Case("2", "3"), Case("1", "other")]
    (verdict,) = ProgramJudge(family.sandbox).judge([(problem, "print(input())", cases)])
    assert [outcome.status is Status.OK for outcome in verdict.outcomes] == [False, True, True, False, False]
    assert sum(outcome.wall_s > 0 for outcome in verdict.outcomes) == 2
