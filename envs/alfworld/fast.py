"""The fast engine: ALFWorld's games in pure Python behind the `Environment` protocol."""

from __future__ import annotations

from envs.alfworld.game import Game
from envs.alfworld.rules import REFUSAL, Act, apply, feedback, local_acts, opening_text, travel_acts
from envs.alfworld.world import State, World, compile_world
from rlanything.core.types import Observation, StepResult, Task

_SILENT = frozenset({"look", "inventory", "help", "examine"})
"""Verbs that change nothing, so the commands need not be found again."""


class Play:
    """One episode of a compiled world: its state and the admissible commands, kept up to date."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.state: State = world.initial
        self.acts: dict[str, Act] = {}
        self.commands: tuple[str, ...] = ()
        self._travel: dict[int, dict[str, Act]] = {}
        self._update()

    def _update(self) -> None:
        """Finds the commands of the current state; `go to` commands are made once for each place."""
        place = self.state.place
        if place not in self._travel:
            self._travel[place] = travel_acts(self.world, place)
        travel = self._travel[place]
        self.acts = local_acts(self.world, self.state) | travel
        self.commands = tuple(sorted(self.acts))

    def step(self, command: str) -> str:
        """Performs a command and returns the text; what is not admissible changes nothing."""
        act = self.acts.get(command)
        if act is None:
            return REFUSAL
        if act.verb not in _SILENT:
            self.state = apply(self.world, self.state, act)
            self._update()
        return feedback(self.world, self.state, act)


class FastEnvironment:
    """Plays tasks of this family; about ten microseconds a step. Its world is deterministic: seeds change nothing."""

    def __init__(self) -> None:
        self._play: Play | None = None
        self._done = False

    def reset(self, task: Task, seed: int) -> Observation:
        """Starts the episode. Raises `BadGame` when the payload is no game."""
        self._play = Play(compile_world(Game.from_payload(task.payload)))
        self._done = False
        return Observation(opening_text(self._play.world, task.instruction), self._play.commands)

    def step(self, action: str) -> StepResult:
        """Acts. Raises `RuntimeError` when there is no episode, or it is over."""
        if self._play is None or self._done:
            raise RuntimeError("no episode is under way: call reset first")
        text = self._play.step(action.strip())
        self._done = self._play.world.is_won(self._play.state)
        return StepResult(Observation(text, self._play.commands), self._done, self._done)

    def close(self) -> None:
        """Forgets the episode."""
        self._play = None
