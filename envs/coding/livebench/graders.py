"""The two graders: LiveBench's own, and the sandbox of this project with LiveBench's comparison."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Protocol

from envs.coding.formats import livebench
from envs.coding.livebench import boxed_grader
from envs.coding.livebench.install import PACKAGES, Installation
from envs.coding.livebench.selection import Item
from envs.coding.problem import Problem
from envs.coding.programs import job_of, passed, program_of
from envs.coding.sandbox import Job, JobResult, Sandbox, SandboxError
from rlanything.core.types import Json

AT_A_TIME = 8
"""Answers in a batch, for each of the sandbox's boxes. A kill loses at most a batch."""
LACKING = re.compile(r"ModuleNotFoundError: No module named '(\w+)")


class Grader(Protocol):
    """Gives scores to answers."""

    name: str
    made: Mapping[str, Json]
    """What a score depends on besides question and answer."""

    def grades(self, items: Sequence[Item]) -> Iterator[boxed_grader.Grade]:
        """A grade for each item, in order, each as soon as it is known."""
        ...


class LiveBenchGrader:
    """LiveBench's own code, each answer in its own box, `workers` boxes at a time. A hostile program can cheat it."""

    name = "livebench"

    def __init__(self, installed: Installation, workers: int) -> None:
        self._installed, self._workers = installed, workers
        self.made: Mapping[str, Json] = {"grader": self.name, **installed.identity}

    def grades(self, items: Sequence[Item]) -> Iterator[boxed_grader.Grade]:
        """See `Grader`."""
        with ThreadPoolExecutor(self._workers) as pool:
            yield from pool.map(self._grade, items)

    def _grade(self, item: Item) -> boxed_grader.Grade:
        pair = (livebench.write(item.problem), item.answer.text)
        return boxed_grader.grade_in_box(self._installed, [pair], len(item.problem.cases))[0]


class SandboxGrader:
    """The sandbox of this project, which never holds expected outputs. `made`: what else its scores depend on."""

    name = "ours"

    def __init__(self, sandbox: Sandbox, workers: int, made: Mapping[str, Any]) -> None:
        self._sandbox, self._batch = sandbox, workers * AT_A_TIME
        self.made: Mapping[str, Json] = {"grader": self.name, **made}

    def grades(self, items: Sequence[Item]) -> Iterator[boxed_grader.Grade]:
        """See `Grader`."""
        for first in range(0, len(items), self._batch):
            yield from self._grades(items[first : first + self._batch])

    def _grades(self, items: Sequence[Item]) -> list[boxed_grader.Grade]:
        jobs = [self._job(item.problem, item.answer.text) for item in items]
        try:
            return [_grade(result) for result in self._sandbox.judge(jobs)]
        except SandboxError as error:
            return [boxed_grader.Grade(None, str(error))] * len(items)

    def _job(self, problem: Problem, answer: str) -> Job:
        program, limits = program_of(problem, answer), self._sandbox.limits
        return job_of(problem, program, problem.cases, limits, stop_at_failure=True)


def _grade(result: JobResult) -> boxed_grader.Grade:
    try:
        return boxed_grader.Grade(int(passed(result)), lacks=_lacking(result))
    except SandboxError as error:
        return boxed_grader.Grade(None, str(error))


def _lacking(result: JobResult) -> str:
    """The packages of LiveBench's environment that a program did not find; '' for none."""
    names = {found[1] for outcome in result.outcomes if (found := LACKING.search(outcome.error))}
    return ", ".join(sorted(names.intersection(PACKAGES)))
