"""What a reward model that writes unit tests is taught: questions for a test with the teacher's answers.

A share of the answers is wrong (`bootstrap.reward.noise`), so that the loop has something left to teach. Nothing is
run: what a teacher shows, it has worked out itself.
"""

from __future__ import annotations

from collections.abc import Sequence

from rlanything.config import Config, ConfigError
from rlanything.core.seeds import derive_seed
from rlanything.core.types import Observation, Task, TaskFamily
from rlanything.core.unittests import UnitTestTeacher
from rlanything.learn.packing import Row
from rlanything.learn.supervised import Turn, conversation_row
from rlanything.loop.prompts import Message, Prompts
from rlanything.loop.speaker import Speaker
from rlanything.stages import build


class UnitTestLessons:
    """`lessons.Lessons` of a reward model that writes tests. Raises `ConfigError` for a family that shows none."""

    def __init__(self, config: Config, family: TaskFamily, prompts: Prompts) -> None:
        if not isinstance(family, UnitTestTeacher):
            raise ConfigError(
                f"judge.writes = 'tests': {type(family).__name__} shows no tests (demonstrate_test, "
                "demonstrate_criticism), which embedded reward models learn from; use votes, or real checkpoints"
            )
        self.config = config
        self.prompts = prompts
        self.teacher = build.teacher(family)
        self.examples: UnitTestTeacher = family

    def critic(self, task: Task, seed: int) -> str:
        """The tests with the share of made-up programs that pass each."""
        return self.examples.demonstrate_criticism(task, seed)

    def corpus(self, tasks: Sequence[Task], demos: Sequence[list[tuple[Observation, str]]]) -> list[str]:
        """Questions and answers about the tasks that were demonstrated."""
        pairs = [self._lesson(task) for task, _ in zip(tasks, demos, strict=False)]
        return [text for question, reply in pairs for text in (question[-1]["content"], reply)]

    def rows(self, policy: Speaker, tasks: Sequence[Task]) -> list[Row]:
        """One row a task."""
        weight = self.config.bootstrap.reward.context_weight
        pairs = [self._lesson(task) for task in tasks]
        turns = [Turn(policy.start(question), policy.encode_choice(reply)) for question, reply in pairs]
        return [conversation_row([turn], weight) for turn in turns]

    def _lesson(self, task: Task) -> tuple[list[Message], str]:
        """The question for a test of the task, as the loop asks it, and an answer."""
        seed = derive_seed(self.config.seed, "demonstrate-test", task.task_id)
        opening, _ = self.teacher.demonstrate(task, seed, 0.0)[0]
        reply = self.examples.demonstrate_test(task, seed, self.config.bootstrap.reward.noise)
        return self.prompts.test_question(opening.text), reply
