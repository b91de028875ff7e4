"""The warm start of a test writer: questions for a test, with the teacher's answers.

A share of the answers is wrong (`bootstrap.reward.noise`), so that training can still improve the model. No program
is run, because the teacher knows the results.
"""

from __future__ import annotations

from collections.abc import Sequence

from rlanything.config import Config
from rlanything.core.errors import ConfigError
from rlanything.core.images.messages import Message
from rlanything.core.protocols import TaskFamily
from rlanything.core.seeds import derive_seed
from rlanything.core.types import Task
from rlanything.core.unittests import UnitTestTeacher
from rlanything.learn.packing import Row
from rlanything.learn.supervised.rows import Turn, conversation_rows
from rlanything.loop.chat_model import ChatModel
from rlanything.loop.prompts import Prompts
from rlanything.rewards.protocols import Demonstration
from rlanything.rewards.requirements import (
    demonstrated_criticism,
    demonstrated_test,
    demonstration,
    teacher,
)


class UnitTestLessons:
    """`WarmStart` of a test writer. Raises `ConfigError` for a family that demonstrates no tests."""

    def __init__(self, config: Config, family: TaskFamily, prompts: Prompts) -> None:
        if not isinstance(family, UnitTestTeacher):
            raise ConfigError(
                f"judge.writes = 'tests': {type(family).__name__} demonstrates no tests (demonstrate_test, "
                "demonstrate_criticism), which embedded reward models learn from; use votes, or real checkpoints"
            )
        self.config = config
        self.prompts = prompts
        self.teacher = teacher(family)
        self.examples: UnitTestTeacher = family

    def critic(self, task: Task, seed: int) -> str:
        """Tests, each with the share of invented programs that pass it."""
        return demonstrated_criticism(self.examples, task, seed)

    def corpus(self, tasks: Sequence[Task], demos: Sequence[Demonstration]) -> list[str]:
        """Questions and answers about the tasks that were demonstrated."""
        pairs = [self._lesson(task) for task, _ in zip(tasks, demos, strict=False)]
        return [text for question, reply in pairs for text in (question[-1]["content"], reply)]

    def rows(self, policy: ChatModel, tasks: Sequence[Task]) -> list[Row]:
        """One row a task."""
        weight = self.config.bootstrap.reward.context_weight
        pairs = [self._lesson(task) for task in tasks]
        turns = [Turn(policy.start(question), policy.encode_choice(reply)) for question, reply in pairs]
        return [row for turn in turns for row in conversation_rows([turn], weight)]

    def _lesson(self, task: Task) -> tuple[list[Message], str]:
        """The question for a test of the task, as the loop asks it, and an answer."""
        seed = derive_seed(self.config.seed, "demonstrate-test", task.task_id)
        opening, _ = demonstration(self.teacher, task, seed, 0.0)[0]
        reply = demonstrated_test(self.examples, task, seed, self.config.bootstrap.reward.noise)
        return self.prompts.test_question(opening.text), reply
