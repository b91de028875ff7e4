"""Which programs write the same on the inputs of written tests, by the problem's own rule of comparison.

The outputs themselves, of which there may be much, stay here.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from envs.coding.examination import read_or_none
from envs.coding.problem import Case, Problem
from envs.coding.programs import COMPARE, job_of, program_of
from envs.coding.sandbox import Outcome, Sandbox, Status
from rlanything.core.unittests import Outputs

WROTE = (Status.OK, Status.WRONG)
"""How a test ends whose program wrote an output to its end."""


def compared(sandbox: Sandbox, problem: Problem, answers: Sequence[str], tests: Sequence[str]) -> Outputs:
    """See `core.unittests.ComparesOutputs`. Equal programs run once, and so do tests of one input."""
    inputs = _first_with_the_input([read_or_none(text, problem) for text in tests])
    asked: dict[int, Case] = {k: case for k, case in inputs if k is not None and case is not None}
    programs = [program_of(problem, answer) for answer in answers]
    wrote = _run(sandbox, problem, list(dict.fromkeys(programs)), asked)
    columns = {k: _groups(problem, [wrote[program][k] for program in programs]) for k in asked}
    places = tuple(k for k, _ in inputs)
    return Outputs(
        places,
        tuple(tuple(None if k is None else columns[k][i] for k in places) for i in range(len(programs))),
    )


def _first_with_the_input(cases: Sequence[Case | None]) -> list[tuple[int | None, Case | None]]:
    """For each test, the first one with its input: number and test; (None, None) for a reply without a test."""
    first: dict[str, tuple[int, Case]] = {}
    for number, case in enumerate(cases):
        if case is not None:
            first.setdefault(case.input, (number, case))
    return [(None, None) if case is None else first[case.input] for case in cases]


def _run(
    sandbox: Sandbox, problem: Problem, programs: Sequence[str], asked: dict[int, Case]
) -> dict[str, dict[int, Outcome]]:
    """Program -> number of a test -> what happened on its input."""
    if not asked:
        return {program: {} for program in programs}
    jobs = [job_of(problem, program, list(asked.values()), sandbox.limits) for program in programs]
    return {
        program: dict(zip(asked, result.outcomes, strict=True))
        for program, result in zip(programs, sandbox.judge(jobs), strict=True)
    }


def _groups(problem: Problem, outcomes: Sequence[Outcome]) -> list[int | None]:
    """For each program, the first one that wrote the same; None where it wrote nothing to its end."""
    same = COMPARE[problem.compare]
    kinds: dict[int, Any] = {}
    found: list[int | None] = []
    for number, outcome in enumerate(outcomes):
        if outcome.status not in WROTE:
            found.append(None)
            continue
        wrote = outcome.result if problem.function else outcome.output
        place = next((k for k, other in kinds.items() if same(wrote, other)), number)
        kinds.setdefault(place, wrote)
        found.append(place)
    return found
