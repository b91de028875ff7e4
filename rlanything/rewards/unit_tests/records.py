"""The tests of an iteration as a run stores them: one line a task in `tests` (format: docs/results.md).

On disk, a test has the form of a vote without a verdict: its text is under `reasoning`. Runs of all versions use this
form.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from typing_extensions import TypedDict

from rlanything.core.records.forms import Form, Integer, Text, require_equal
from rlanything.core.records.rollouts import (
    JudgementForm,
    LessonForm,
    judgements_from_json,
    judgements_to_json,
    lesson_from_json,
    lesson_to_json,
)
from rlanything.core.types import Json, Judgement, Lesson, Task, Vote
from rlanything.core.unittests import Tables, TablesForm, UnitTest
from rlanything.loop.group import Group
from rlanything.loop.record import NotStored
from rlanything.rewards.unit_tests.writer import Attempts, Examined, examined

FILE = "tests"


class _Examined(TypedDict):
    judgement: JudgementForm
    tables: TablesForm
    agreed: bool
    criticism: Text


class _Record(TypedDict):
    slot: Integer
    task_id: Text
    proposal: bool
    trains: bool
    examined: _Examined
    lesson: LessonForm | None


_RECORD = Form(_Record)


@dataclass(frozen=True)
class UnitTestRecord:
    """One stored line. proposal, trains: the same as in the episodes' records."""

    slot: int
    task_id: str
    proposal: bool
    trains: bool
    examined: Examined

    def to_json(self) -> dict[str, Json]:
        """As a JSON object."""
        result = self.examined
        replies = tuple(Vote(None, test.text, test.response_ids, test.logprobs) for test in result.tests)
        return {
            "slot": self.slot,
            "task_id": self.task_id,
            "proposal": self.proposal,
            "trains": self.trains,
            "examined": {
                "judgement": judgements_to_json([Judgement(result.prompt_ids, replies)])[0],
                "tables": result.tables.to_json(),
                "agreed": result.agreed,
                "criticism": result.criticism,
            },
            "lesson": lesson_to_json(result.lesson),
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Json]) -> UnitTestRecord:
        """Inverse of `to_json`. Raises `ValueError` for a record of another form."""
        _RECORD.check(data)
        found, lesson = data["examined"], lesson_from_json(data["lesson"])
        return cls(data["slot"], data["task_id"], data["proposal"], data["trains"], _examined(found, lesson))


def _examined(data: Mapping[str, Json], lesson: Lesson | None) -> Examined:
    asked = judgements_from_json([data["judgement"]])[0]
    tests = tuple(UnitTest(vote.reasoning, vote.response_ids, vote.logprobs) for vote in asked.votes)
    tables = Tables.from_json(data["tables"])
    require_equal("tests", len(tables.tests), "replies", len(tests))
    if lesson is not None:
        require_equal("advantages", len(lesson.advantages), "replies", len(tests))
    return Examined(asked.prompt_ids, tests, tables, data["agreed"], data["criticism"], lesson)


def unit_test_records(groups: Sequence[Group]) -> dict[str, list[dict[str, Json]]]:
    """The lines of an iteration, in the order of the groups, under the name of their file."""
    records = [
        UnitTestRecord(g.slot, g.task.task_id, g.proposal is not None, g.trains, examined(g)) for g in groups
    ]
    return {FILE: [record.to_json() for record in records]} if records else {}


class StoredTests:
    """The tests of one iteration, and the results of programs on them, as a `TestSource`.

    Two slots can hold the same task. Each gets its own tests, in the order in which they are stored.
    """

    def __init__(self, stored: Iterable[UnitTestRecord]) -> None:
        self.tests: dict[str, deque[Examined]] = defaultdict(deque)
        for record in stored:
            self.tests[record.task_id].append(replace(record.examined, lesson=None))

    def examine(
        self, work: Sequence[Attempts], run_seed: int, iteration: int, *, write: bool
    ) -> list[Examined]:
        """The stored tests of the tasks, without their lessons.

        Raises `NotStored` when no tests of a task are left, or when they ran on another number of programs.
        """
        return [self._next(attempts, iteration) for attempts in work]

    def failed_tests(self, task: Task, tables: Tables) -> list[dict[int, str]]:
        """No failed tests for any program: only a critic needs them, and a replay asks none."""
        return [{} for _ in tables.dataset]

    def _next(self, attempts: Attempts, iteration: int) -> Examined:
        task_id = attempts.task.task_id
        if not self.tests[task_id]:
            raise NotStored(f"iteration {iteration}: the run holds no more tests of task {task_id[:12]}")
        found = self.tests[task_id].popleft()
        ran, programs = len(found.tables.dataset), len(attempts.answers)
        if ran != programs:
            raise NotStored(
                f"iteration {iteration}: the tests of task {task_id[:12]} ran on {ran} programs, not {programs}"
            )
        return found
