"""One episode of a compiled world."""

from __future__ import annotations

from envs.alfworld.play.commands import REFUSAL, Act, apply, feedback, local_acts, travel_acts
from envs.alfworld.play.world import State, World

_SILENT = frozenset({"look", "inventory", "help", "examine"})
"""Verbs that change neither the state nor the commands."""


class Episode:
    """The state of an episode and its admissible commands."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.state: State = world.initial
        self.acts: dict[str, Act] = {}
        self.commands: tuple[str, ...] = ()
        self._travel: dict[int, dict[str, Act]] = {}
        self._update()

    def _update(self) -> None:
        """Find the commands of the state; the `go to` commands of a place are made once."""
        place = self.state.place
        if place not in self._travel:
            self._travel[place] = travel_acts(self.world, place)
        travel = self._travel[place]
        self.acts = local_acts(self.world, self.state) | travel
        self.commands = tuple(sorted(self.acts))

    def step(self, command: str) -> str:
        """Perform a command and return the text; an inadmissible one changes nothing."""
        act = self.acts.get(command)
        if act is None:
            return REFUSAL
        if act.verb not in _SILENT:
            self.state = apply(self.world, self.state, act)
            self._update()
        return feedback(self.world, self.state, act)
