"""Verdicts on programs, found in batches and remembered: what was run once is not run again.

Samples repeat each other, and a program is asked about twice: by its episode and for the rewards. A batch holds all
that is not known yet, so that every box is busy.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from envs.coding.judging import job_of
from envs.coding.problem import Case, Comparison, Problem
from envs.coding.sandbox import Outcome, Sandbox, Status, Verdict

KEPT = 8192
"""Programs whose outcomes are remembered: more than a turn of an iteration or of an evaluation has."""
Trial = tuple[Problem, str, Sequence[Case]]
"""A program, as it is run, and tests of its problem."""
Cells = dict[Case, Outcome]


@dataclass(frozen=True, slots=True)
class Key:
    """All that a test's outcome depends on but the test: two problems that agree in it share their outcomes."""

    program: str
    function: str
    compare: Comparison
    time_s: float
    memory_mb: int

    @classmethod
    def of(cls, problem: Problem, program: str) -> Key:
        """The key of a program that answers a problem."""
        return cls(program, problem.function, problem.compare, problem.time_s, problem.memory_mb)


class Verdicts:
    """Judges in the sandbox that `sandbox` opens when one is first needed.

    kept: programs that are remembered; those that were not asked about for longest are forgotten.
    """

    def __init__(self, sandbox: Callable[[], Sandbox], kept: int = KEPT) -> None:
        self._sandbox, self._kept = sandbox, kept
        self._known: OrderedDict[Key, Cells] = OrderedDict()

    def of(self, work: Sequence[Trial]) -> list[Verdict]:
        """A verdict for each trial, without what the programs wrote. Raises `SandboxError` when boxes no longer start.

        A program is judged once on each of its tests, in this and all earlier calls together, and tests of a call that
        differ in the expected output alone share a run; only where the sandbox failed, the next call tries again.
        """
        found = self._run(_missing(work, self._known))
        cells = {key: {**self._known.get(key, {}), **found.get(key, {})} for key in _keys(work)}
        self._keep(cells)
        return [
            Verdict(tuple(cells[Key.of(problem, program)][case] for case in cases))
            for problem, program, cases in work
        ]

    def _run(self, missing: dict[Key, Trial]) -> dict[Key, Cells]:
        """Everything that is missing, in one batch; what programs print nobody reads, and all of it fits no memory."""
        if not missing:
            return {}
        sandbox = self._sandbox()
        verdicts = sandbox.run(
            [
                replace(job_of(*trial, sandbox.limits), keep_output=False, share_runs=True)
                for trial in missing.values()
            ]
        )
        return {
            key: dict(zip(cases, verdict.outcomes, strict=True))
            for (key, (_, _, cases)), verdict in zip(missing.items(), verdicts, strict=True)
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
    """Each program once, with every test that has no outcome yet."""
    problems: dict[Key, Problem] = {}
    wanted: dict[Key, dict[Case, None]] = {}
    for problem, program, cases in work:
        key = Key.of(problem, program)
        fresh = [case for case in cases if case not in known.get(key, {})]
        if fresh:
            problems.setdefault(key, problem)
            wanted.setdefault(key, {}).update(dict.fromkeys(fresh))
    return {key: (problems[key], key.program, _side_by_side(cases)) for key, cases in wanted.items()}


def _side_by_side(cases: Iterable[Case]) -> tuple[Case, ...]:
    """The tests, those of the same input together: written ones often differ in the expected output alone."""
    by_input: dict[str, list[Case]] = {}
    for case in cases:
        by_input.setdefault(case.input, []).append(case)
    return tuple(case for group in by_input.values() for case in group)
