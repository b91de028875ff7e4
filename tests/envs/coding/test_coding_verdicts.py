"""What a batch of verdicts runs, and what it holds in memory meanwhile."""

from __future__ import annotations

import json
import tracemalloc

import pytest

from envs.coding.family import CodingFamily
from envs.coding.problem import Case, Comparison, Problem
from envs.coding.program_judge import Key, ProgramJudge
from envs.coding.programs import program_of
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


@pytest.mark.parametrize("size", [50, 1_500_000, 4_000_000])
def test_a_right_program_may_print_as_much_as_is_expected(size: int, family: CodingFamily) -> None:
    """And a wrong one not much more, in a test with a short output too: what it may print is the problem's."""
    cases = (Case("1", "1"), Case(str(size), "1" * size))
    problem = Problem("Print as many ones.", cases)
    programs = ["print('1' * int(input()))", "print('1' * 20_000_000)"]
    right, wrong = ProgramJudge(family.sandbox).judge([(problem, p, cases) for p in programs])
    assert [o.status for o in right.outcomes] == [Status.OK, Status.OK]
    assert [o.status for o in wrong.outcomes] == [Status.OUTPUT_LIMIT, Status.OUTPUT_LIMIT]


def test_letters_that_json_escapes_fit_as_well(family: CodingFamily) -> None:
    text = "é" * 600_000
    cases = (Case("1", json.dumps(text, ensure_ascii=False)),)
    problem = Problem("Many letters.", cases, function="f", compare=Comparison.VALUE)
    program = program_of(problem, "def f(x): return 'é' * 600_000")
    assert ProgramJudge(family.sandbox).judge([(problem, program, cases)])[0].status is Status.OK


def test_problems_that_print_little_share_outcomes(family: CodingFamily) -> None:
    """Although their longest outputs differ: the limit of both is the sandbox's."""
    short, longer = Problem("One.", (Case("1", "1"),)), Problem("Two.", (Case("1", "1" * 999),))
    assert Key.of(short, "print(1)") == Key.of(longer, "print(1)")


def test_tests_of_an_input_share_a_run_wherever_they_stand(family: CodingFamily) -> None:
    problem = Problem("Say it again.", (Case("1", "1"),))
    cases = [Case("1", "no"), Case("2", "2"), Case("1", "1"), Case("2", "3"), Case("1", "other")]
    (verdict,) = ProgramJudge(family.sandbox).judge([(problem, "print(input())", cases)])
    assert [outcome.status is Status.OK for outcome in verdict.outcomes] == [False, True, True, False, False]
    assert sum(outcome.wall_s > 0 for outcome in verdict.outcomes) == 2
