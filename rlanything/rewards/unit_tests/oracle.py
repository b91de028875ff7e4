"""The environment's teacher as the writer of unit tests. A test is right with a declared probability; no model runs."""

from __future__ import annotations

from collections.abc import Sequence

from rlanything.config import JudgeSource
from rlanything.core.errors import ConfigError
from rlanything.core.seeds import derive_seed
from rlanything.core.types import Task
from rlanything.core.unittests import Tables, TestingTeacher, UnitTest
from rlanything.loop.share import host_of, shared
from rlanything.rewards.oracle import Errors
from rlanything.rewards.requirements import known_tests
from rlanything.rewards.unit_tests.writer import Attempts, Examined, tests_agree


class OracleTests:
    """`TestSource` whose tests the environment's teacher writes. They have no tokens.

    `rewards.oracle.Errors` says which tests are wrong; the question of a test is its task. A task that the teacher does
    not know, such as a rewritten one, gets no tests, because it is unknown which would be right.
    """

    def __init__(self, family: TestingTeacher, judge: JudgeSource, m: int) -> None:
        self.family = family
        self.config = judge
        self.m = m

    def examine(
        self, work: Sequence[Attempts], run_seed: int, iteration: int, *, write: bool
    ) -> list[Examined]:
        """Tests for each task (none with `write=False`), run on its answers.

        The processes of a run divide the tasks among them. Raises `ConfigError` where the teacher knows none of the
        tasks.
        """
        errors = Errors(self.config, run_seed)

        def examine(part: Sequence[Attempts]) -> list[Examined]:
            return self._examine(
                part, [self._write(a.task, errors, iteration) if write else [] for a in part]
            )

        found = shared(work, examine)
        if write and found and not any(item.tests for item in found):
            raise ConfigError(
                f"judge.source = 'oracle': {type(self.family).__name__} knows a right test for none of the tasks of "
                f"iteration {iteration}; such an oracle needs generated problems: env=coding"
            )
        return found

    def failed_tests(self, task: Task, tables: Tables) -> list[dict[int, str]]:
        """For each program, the task's own tests that it fails: number -> text."""
        return self.family.failed_tests(task.copy(), tables)

    def _write(self, task: Task, errors: Errors, iteration: int) -> list[str]:
        """m replies, each with a test; no reply for a task that the teacher does not know."""
        wrong = errors.of((task.task_id,), (iteration, task.task_id), self.m)
        seeds = [
            derive_seed(errors.run_seed, "oracle-test", iteration, task.task_id, j) for j in range(self.m)
        ]
        return known_tests(self.family, task, zip(seeds, map(float, wrong), strict=True))

    def _examine(self, work: Sequence[Attempts], written: Sequence[Sequence[str]]) -> list[Examined]:
        asked = [(a.task, a.answers, replies) for a, replies in zip(work, written, strict=True)]
        return [
            Examined(
                (),
                tuple(UnitTest(text, (), ()) for text in tables.tests),
                tables,
                tests_agree(self.family, attempts, tables),
                self.family.criticism(attempts.task.copy(), tables),
            )
            for attempts, tables in zip(work, host_of(self.family).examine(asked), strict=True)
        ]
