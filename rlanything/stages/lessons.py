"""What the first reward model is taught: to vote on steps, or to write unit tests (`judge.writes`).

Each kind also knows what an adapter will read about rollouts, and what its texts add to the tokenizer's corpus.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from rlanything.config import Config
from rlanything.core.types import Observation, Task, TaskFamily
from rlanything.learn.packing import Row
from rlanything.loop.prompts import Prompts
from rlanything.loop.speaker import Speaker
from rlanything.stages.testlessons import UnitTestLessons
from rlanything.stages.votelessons import VoteLessons

Demonstration = list[tuple[Observation, str]]


class Lessons(Protocol):
    """The parts of the warm start that depend on what the reward model writes."""

    def critic(self, task: Task, seed: int) -> str:
        """What an adapter could be told about rollouts of the task."""
        ...

    def corpus(self, tasks: Sequence[Task], demos: Sequence[Demonstration]) -> list[str]:
        """What the reward model reads and writes about the tasks, of which the first ones were demonstrated."""
        ...

    def rows(self, policy: Speaker, tasks: Sequence[Task]) -> list[Row]:
        """What the reward model learns from. `policy`: the base policy, whose tokenizer is everybody's."""
        ...


def lessons(config: Config, family: TaskFamily, prompts: Prompts) -> Lessons:
    """The kind that the configuration names. Raises `ConfigError` when the family cannot teach it."""
    kind = VoteLessons if config.judge.writes == "votes" else UnitTestLessons
    return kind(config, family, prompts)
