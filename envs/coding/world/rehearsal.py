"""What made-up programs would do on tests, computed without running one: what an adapter learns to read."""

from __future__ import annotations

import random
from collections.abc import Sequence

from envs.coding.problem import Case, Problem
from envs.coding.replies import read_test, write_test
from envs.coding.world.chain import Chain, Undefined
from envs.coding.world.teacher import chain_of, confused, test_reply
from rlanything.core.unittests import Row, Tables

MOST = 8
"""Most programs, and most written tests, that are made up; from 2 to 8 give all the shares that small runs show."""


def rehearse(problem: Problem, rng: random.Random) -> Tables:
    """Up to `MOST` programs, of which any share is wrong, on the problem's tests and on as many written ones.

    Raises `BadChain` for a problem that is not of the world.
    """
    chain = chain_of(problem)
    wrong, misled = rng.random(), rng.random()
    programs = [confused(chain, rng) if rng.random() < wrong else chain for _ in range(rng.randint(2, MOST))]
    replies = [test_reply(chain, rng, misled) for _ in range(rng.randint(2, MOST))]
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
        return program.run(case.input).split() == case.output.split()
    except Undefined:
        return False
