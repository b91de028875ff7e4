"""What stand-ins learn from: demonstrations, verdicts, critics and rewrites, with the loop's own prompts.

A family that generates its data has exact labels of steps (`TeacherLessons`). One whose experts alone are asked, as a
desktop, is in `expert_lessons`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Protocol

from rlanything.config import Config
from rlanything.core.images import Image
from rlanything.core.protocols import GeneratedData
from rlanything.core.seeds import derive_seed
from rlanything.core.types import Direction, Task
from rlanything.learn.packing import Row
from rlanything.loop.chat_model import ChatModel
from rlanything.loop.prompts import Prompts
from rlanything.rewards.kind import kind_of
from rlanything.rewards.protocols import Demonstration, WarmStart
from rlanything.rewards.requirements import demonstration, teacher
from rlanything.runs import build
from rlanything.stages.bootstrap.warmstart import demonstration_rows

PRACTICE_STEPS = 2
"""Steps of an episode on which the reward model's stand-in is taught: each costs the whole prompt of the policy."""


class Lessons(Protocol):
    """What the stand-ins of one rehearsal are taught.

    tasks: known by heart: some are solved then, and there is something to judge. demos: one of each task. images: the
    pictures that they show. factors: by role, how many times as many steps it is taught; 1 where
    it is not named.
    """

    tasks: Sequence[Task]
    demos: Sequence[Demonstration]
    images: Sequence[Image]
    factors: Mapping[str, int]

    def critic(self, task: Task) -> str:
        """An invented criticism of failed attempts at the task."""
        ...

    def corpus(self) -> list[str]:
        """Texts for the tokenizer of what the reward model reads and writes."""
        ...

    def rewriting(self, task: Task, way: Direction) -> tuple[str, str]:
        """(facts, reply) of a rewrite. Raises `InvalidProposal` where there is none in that direction."""
        ...

    def policy_rows(self, chat_model: ChatModel) -> list[list[Row]]:
        """What the policy learns from: the rows of each demonstration."""
        ...

    def reward_rows(self, chat_model: ChatModel, labels: bool) -> list[Row]:
        """What the reward model learns from; labels: a judge that labels steps, which is asked in other words."""
        ...


class TeacherLessons:
    """`Lessons` of a family that generates tasks and labels their steps.

    family: of a generated world, whose teacher the stand-ins learn from. tasks: those of the rehearsal itself.
    """

    images: Sequence[Image] = ()
    factors: Mapping[str, int] = MappingProxyType({})

    def __init__(self, config: Config, root: Path, family: GeneratedData, tasks: Sequence[Task]) -> None:
        self._seed, self._family = config.seed, family
        self._prompts: Prompts = build.prompts(config, root)
        # A fresh model writes no command; constrained to commands, it acts at random, sometimes rightly.
        practice = config.rollout.model_copy(update={"decoding": "constrained", "max_steps": PRACTICE_STEPS})
        acting = config.model_copy(update={"rollout": practice})
        self._taught: WarmStart = kind_of(config).warm_start(acting, family, self._prompts)
        self.tasks = tasks
        steps = config.rollout.max_steps
        self.demos: Sequence[Demonstration] = [
            demonstration(teacher(family), task, derive_seed(config.seed, "rehearse", task.task_id), 0.0)[
                :steps
            ]
            for task in tasks
        ]

    def critic(self, task: Task) -> str:
        """See `Lessons`."""
        return self._taught.critic(task, self._seed)

    def corpus(self) -> list[str]:
        """See `Lessons`."""
        return self._taught.corpus(self.tasks, self.demos)

    def rewriting(self, task: Task, way: Direction) -> tuple[str, str]:
        """See `Lessons`."""
        return self._family.rewriting(task, way, self._seed)

    def policy_rows(self, chat_model: ChatModel) -> list[list[Row]]:
        """See `Lessons`."""
        return [demonstration_rows(chat_model, self._prompts, demo, 0.0) for demo in self.demos]

    def reward_rows(self, chat_model: ChatModel, labels: bool) -> list[Row]:
        """See `Lessons`. The teacher labels, so that a judge learns what the reward model learns."""
        return self._taught.rows(chat_model, self.tasks)
