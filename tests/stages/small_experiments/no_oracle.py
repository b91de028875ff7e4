"""The household of the embedded world without its oracle: a task family that is no teacher."""

from __future__ import annotations

from envs.alfworld.family import AlfworldFamily
from rlanything.core.protocols import Environment
from rlanything.core.types import Task


class NoOracle:
    """What the loop needs, and nothing that knows which step is good."""

    name = AlfworldFamily.name

    def __init__(self, **keys: object) -> None:
        self._family = AlfworldFamily(**keys)

    def splits(self) -> tuple[str, ...]:
        """The distributions that `make` draws tasks from."""
        return self._family.splits()

    def make(self, split: str, count: int, seed: int) -> list[Task]:
        """Tasks of a split."""
        return self._family.make(split, count, seed)

    def environment(self) -> Environment:
        """A fresh environment."""
        return self._family.environment()

    def validate(self, task: Task) -> str:
        """Why a task must not be tried, or ''."""
        return self._family.validate(task)

    def describe(self, task: Task) -> str:
        """The facts of a task."""
        return self._family.describe(task)

    def parse(self, parent: Task, reply: str) -> Task:
        """The task in a reply."""
        return self._family.parse(parent, reply)
