"""Judges programs in batches and remembers the outcomes: no program runs twice on a test.

Samples repeat each other, and each program is judged twice: for its episode and for the rewards. A batch holds all that
is not known yet, so that every box is busy.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from envs.coding.problem import Case, Comparison, Problem
from envs.coding.programs import job_of, output_kb
from envs.coding.sandbox import JobResult, Outcome, Sandbox, Status

KEPT = 8192
"""Programs whose outcomes are remembered: more than one turn of an iteration or an evaluation has."""
Trial = tuple[Problem, str, Sequence[Case]]
"""A problem, a program as it is run, and tests."""
Cells = dict[Case, Outcome]


@dataclass(frozen=True, slots=True)
class Key:
    """What the outcome of a test depends on, besides the test. Problems with the same key share outcomes."""

    program: str
    function: str
    compare: Comparison
    time_s: float
    memory_mb: int
    output_kb: int

    @classmethod
    def of(cls, problem: Problem, program: str) -> Key:
        """The key of a program that answers a problem."""
        limits = problem.time_s, problem.memory_mb, output_kb(problem)
        return cls(program, problem.function, problem.compare, *limits)


class ProgramJudge:
    """Judges in the sandbox that `sandbox` opens at the first use.

    kept: programs that are remembered; the least recently used are forgotten.
    """

    def __init__(self, sandbox: Callable[[], Sandbox], kept: int = KEPT) -> None:
        self._sandbox, self._kept = sandbox, kept
        self._known: OrderedDict[Key, Cells] = OrderedDict()

    def judge(self, work: Sequence[Trial]) -> list[JobResult]:
        """A result for each trial, without the programs' outputs. Raises `SandboxError` when boxes no longer start.

        A program is judged once on each test, over all calls, and tests that differ only in the expected output share a
        run. Where the sandbox failed, the next call tries again.
        """
        found = self._run(_missing(work, self._known))
        cells = {key: {**self._known.get(key, {}), **found.get(key, {})} for key in _keys(work)}
        self._keep(cells)
        return [
            JobResult(tuple(cells[Key.of(problem, program)][case] for case in cases))
            for problem, program, cases in work
        ]

    def _run(self, missing: dict[Key, Trial]) -> dict[Key, Cells]:
        """Judge what is missing in one batch. Outputs are not kept: nobody reads them, and there may be much."""
        if not missing:
            return {}
        sandbox = self._sandbox()
        results = sandbox.judge(
            [
                replace(job_of(*trial, sandbox.limits), keep_output=False, share_runs=True)
                for trial in missing.values()
            ]
        )
        return {
            key: dict(zip(cases, result.outcomes, strict=True))
            for (key, (_, _, cases)), result in zip(missing.items(), results, strict=True)
        }

    def _keep(self, cells: dict[Key, Cells]) -> None:
        for key, outcomes in cells.items():
            self._known[key] = {c: o for c, o in outcomes.items() if o.status is not Status.INFRASTRUCTURE}
            self._known.move_to_end(key)
        while len(self._known) > self._kept:
            self._known.popitem(last=False)


def _keys(work: Sequence[Trial]) -> list[Key]:
    return list(dict.fromkeys(Key.of(problem, program) for problem, program, _ in work))


def _missing(work: Sequence[Trial], known: OrderedDict[Key, Cells]) -> dict[Key, Trial]:
    """Each program once, with all its tests that have no outcome yet."""
    problems: dict[Key, Problem] = {}
    wanted: dict[Key, dict[Case, None]] = {}
    for problem, program, cases in work:
        key = Key.of(problem, program)
        fresh = [case for case in cases if case not in known.get(key, {})]
        if fresh:
            problems.setdefault(key, problem)
            wanted.setdefault(key, {}).update(dict.fromkeys(fresh))
    return {key: (problems[key], key.program, _grouped_by_input(cases)) for key, cases in wanted.items()}


def _grouped_by_input(cases: Iterable[Case]) -> tuple[Case, ...]:
    """The tests, those of the same input next to each other: written tests often differ only in the output."""
    by_input: dict[str, list[Case]] = {}
    for case in cases:
        by_input.setdefault(case.input, []).append(case)
    return tuple(case for group in by_input.values() for case in group)
