"""The fast engine: ALFWorld's games in pure Python. Implements `Environment`."""

from __future__ import annotations

from envs.alfworld.games.game import Game
from envs.alfworld.play.commands import opening_text
from envs.alfworld.play.episode import Episode
from envs.alfworld.play.world import compile_world
from rlanything.core.types import Observation, StepResult, Task


class FastEnvironment:
    """Plays tasks in about ten microseconds a step. Seeds change nothing: the world is deterministic."""

    def __init__(self) -> None:
        self._episode: Episode | None = None
        self._done = False

    def reset(self, task: Task, seed: int) -> Observation:
        """Start an episode. Raises `GameError` when the payload is no game."""
        self._episode = Episode(compile_world(Game.from_payload(task.payload)))
        self._done = False
        return Observation(opening_text(self._episode.world, task.instruction), self._episode.commands)

    def step(self, action: str) -> StepResult:
        """Perform a command. Raises `RuntimeError` before `reset` and after the end of an episode."""
        if self._episode is None or self._done:
            raise RuntimeError("no episode is under way: call reset first")
        text = self._episode.step(action.strip())
        self._done = self._episode.world.is_won(self._episode.state)
        return StepResult(Observation(text, self._episode.commands), self._done, self._done)

    def close(self) -> None:
        """Drop the episode."""
        self._episode = None
