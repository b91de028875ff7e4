"""The two graders: LiveBench's own, and the sandbox of this project with LiveBench's comparison."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Protocol

from envs.coding.formats import livebench
from envs.coding.judging import passed, program_of, run
from envs.coding.livebench import box
from envs.coding.livebench.install import PACKAGES, Installation
from envs.coding.livebench.selection import Item
from envs.coding.sandbox import Sandbox, SandboxError, Verdict
from rlanything.core.types import Json

AT_A_TIME = 8
"""Answers for each of the sandbox's boxes in a batch; a kill loses a batch."""
LACKING = re.compile(r"ModuleNotFoundError: No module named '(\w+)")


class Grader(Protocol):
    """Gives scores to answers."""

    name: str
    made: Mapping[str, Json]
    """What a score depends on besides question and answer."""

    def grades(self, items: Sequence[Item]) -> Iterator[box.Grade]:
        """A grade for each item, in order, as soon as it is there."""
        ...


class Theirs:
    """LiveBench's grader, every answer in a box of its own, so many at a time. A program out to cheat it can."""

    name = "livebench"

    def __init__(self, installed: Installation, workers: int) -> None:
        self._installed, self._workers = installed, workers
        self.made: Mapping[str, Json] = {"grader": self.name, **installed.identity}

    def grades(self, items: Sequence[Item]) -> Iterator[box.Grade]:
        """See `Grader`."""
        with ThreadPoolExecutor(self._workers) as pool:
            yield from pool.map(self._grade, items)

    def _grade(self, item: Item) -> box.Grade:
        pair = (livebench.write(item.problem), item.answer.text)
        return box.grade(self._installed, [pair], len(item.problem.cases))[0]


class Ours:
    """The sandbox, in which expected outputs never lie. `made`: what else its scores depend on."""

    name = "ours"

    def __init__(self, sandbox: Sandbox, workers: int, made: Mapping[str, Any]) -> None:
        self._sandbox, self._batch = sandbox, workers * AT_A_TIME
        self.made: Mapping[str, Json] = {"grader": self.name, **made}

    def grades(self, items: Sequence[Item]) -> Iterator[box.Grade]:
        """See `Grader`."""
        for first in range(0, len(items), self._batch):
            yield from self._grades(items[first : first + self._batch])

    def _grades(self, items: Sequence[Item]) -> list[box.Grade]:
        work = [(i.problem, program_of(i.problem, i.answer.text), i.problem.cases) for i in items]
        try:
            return [_grade(verdict) for verdict in run(self._sandbox, work, stop_at_failure=True)]
        except SandboxError as error:
            return [box.Grade(None, str(error))] * len(items)


def _grade(verdict: Verdict) -> box.Grade:
    try:
        return box.Grade(int(passed(verdict)), lacks=_lacking(verdict))
    except SandboxError as error:
        return box.Grade(None, str(error))


def _lacking(verdict: Verdict) -> str:
    """The package of LiveBench's environment that a program asked for in vain; '' where there is none."""
    names = {found[1] for outcome in verdict.outcomes if (found := LACKING.search(outcome.error))}
    return ", ".join(sorted(names.intersection(PACKAGES)))
