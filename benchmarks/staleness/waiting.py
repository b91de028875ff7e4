"""Household games that answer after a while."""

from __future__ import annotations

import time
from typing import Any

from envs.alfworld.family import AlfworldFamily
from rlanything.core.protocols import Environment
from rlanything.core.types import Observation, StepResult, Task


class WaitingGames(AlfworldFamily):
    """The family, whose environments take `wait_s` seconds longer for a step."""

    def __init__(self, wait_s: float, **arguments: Any) -> None:
        super().__init__(**arguments)
        self.wait_s = wait_s

    def environment(self) -> Environment:
        """See `TaskFamily`."""
        return _Waiting(super().environment(), self.wait_s)


class _Waiting:
    def __init__(self, game: Environment, wait_s: float) -> None:
        self._game, self._wait_s = game, wait_s

    def reset(self, task: Task, seed: int) -> Observation:
        return self._game.reset(task, seed)

    def step(self, action: str) -> StepResult:
        time.sleep(self._wait_s)
        return self._game.step(action)

    def close(self) -> None:
        self._game.close()
