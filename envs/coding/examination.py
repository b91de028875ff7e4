"""Written tests against programs: the tables of each task for the rewards, and their text for the adapter."""

from __future__ import annotations

from collections.abc import Sequence

from envs.coding.problem import Case, Problem
from envs.coding.program_judge import ProgramJudge, Trial
from envs.coding.programs import program_of, row
from envs.coding.replies import InvalidTestError, rated_tests, read_test, shown_test, write_test
from rlanything.core.coding_signals import pass_rates
from rlanything.core.types import Task
from rlanything.core.unittests import Examination, Row, Tables

DATASET, GENERATED = "dataset", "generated"
"""Whose tests a critic reads."""


def examine(judge: ProgramJudge, work: Sequence[Examination]) -> list[Tables]:
    """See `core.unittests.Examiner`: all tasks in one batch. Raises `SandboxError` when boxes no longer start."""
    asked = [_Asked(*item) for item in work]
    found = iter(judge.judge([trial for one in asked for trial in one.trials]))
    return [one.tables([row(next(found)) for _ in one.trials]) for one in asked]


def criticism(problem: Problem, tables: Tables, most: int) -> str:
    """At most `most` of the problem's and the written tests, each with the share of programs that pass it."""
    width = len(problem.cases)
    own = pass_rates(tables.dataset) or [None] * width
    generated = pass_rates(tables.generated) or [None] * len(tables.tests)
    written = [read_or_none(text, problem) for text in tables.tests]
    return rated_tests(problem.cases, written, [*own, *generated], most)


def failed_tests(problem: Problem, tables: Tables, source: str) -> list[dict[int, str]]:
    """For each program, the tests that it fails: number from 0 -> text. A test that could not be run is no failure.

    source: `dataset`, the problem's own tests, or `generated`, the readable ones that the reward model wrote. Where it
    wrote none, the problem's own.
    """
    cases: list[Case | None] = list(problem.cases)
    rows = tables.dataset
    if source == GENERATED and tables.tests:
        cases, rows = [read_or_none(text, problem) for text in tables.tests], tables.generated
    texts = {k: shown_test(case) for k, case in enumerate(cases) if case is not None}
    return [
        {k: texts[k] for k, passed in enumerate(cells) if passed is False and k in texts} for cells in rows
    ]


class _Asked:
    """One task's part of the batch."""

    def __init__(self, task: Task, answers: Sequence[str], replies: Sequence[str]) -> None:
        problem = Problem.from_task(task)
        self._own = len(problem.cases)
        self._written = [read_or_none(reply, problem) for reply in replies]
        cases = (*problem.cases, *(case for case in self._written if case is not None))
        self.trials: list[Trial] = [(problem, program_of(problem, answer), cases) for answer in answers]

    def tables(self, rows: Sequence[Row]) -> Tables:
        """The cells of each program as two tables. No program passes a reply without a test."""
        return Tables(
            tuple("" if case is None else write_test(case) for case in self._written),
            tuple(cells[: self._own] for cells in rows),
            tuple(self._generated(cells[self._own :]) for cells in rows),
        )

    def _generated(self, cells: Row) -> Row:
        given = iter(cells)
        return tuple(False if case is None else next(given) for case in self._written)


def read_or_none(reply: str, problem: Problem) -> Case | None:
    """The test in a reply, or None."""
    try:
        return read_test(reply, problem)
    except InvalidTestError:
        return None
