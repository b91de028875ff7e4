"""Tables of made-up programs on tests, computed from chains without the sandbox. Adapters learn to read them."""

from __future__ import annotations

import random
from collections.abc import Sequence

from envs.coding.problem import Case, Problem
from envs.coding.replies import read_test, write_test
from envs.coding.world.chain import Chain, UndefinedError
from envs.coding.world.teacher import chain_of, confused, test_reply
from rlanything.core.unittests import Row, Tables

MOST = 8
"""Most programs and most written tests. Two to eight give all the pass rates of small runs."""


def simulated_tables(problem: Problem, rng: random.Random) -> Tables:
    """Up to `MOST` programs, some of them wrong, on the problem's tests and on up to `MOST` written ones.

    Raises `ChainError` for a problem that is not of the world.
    """
    chain = chain_of(problem)
    wrong, misled = rng.random(), rng.random()
    programs = [confused(chain, rng) if rng.random() < wrong else chain for _ in range(rng.randint(2, MOST))]
    replies = [test_reply(chain, rng, misled, ()) for _ in range(rng.randint(2, MOST))]
    written = [read_test(reply, problem) for reply in replies]
    return Tables(
        tuple(write_test(case) for case in written),
        tuple(_row(program, problem.cases) for program in programs),
        tuple(_row(program, written) for program in programs),
    )


def _row(program: Chain, tests: Sequence[Case]) -> Row:
    return tuple(_passes(program, case) for case in tests)


def _passes(program: Chain, case: Case) -> bool:
    try:
        return program.output(case.input).split() == case.output.split()
    except UndefinedError:
        return False
