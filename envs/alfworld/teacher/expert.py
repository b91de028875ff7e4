"""A searching expert that knows only what it has seen, with random commands and habits on purpose.

A first policy imitates it. Random commands make that policy noisy, habits make it systematically wasteful.
"""

from __future__ import annotations

import random
from collections.abc import Mapping

from envs.alfworld.play.commands import opening_text
from envs.alfworld.play.world import World
from envs.alfworld.teacher.oracle import Oracle
from rlanything.core.seeds import derive_seed
from rlanything.core.types import Observation

LIMIT = 100
"""Most steps of a demonstration. With much noise an episode might never end."""
HABITS = {"look": "go", "inventory": "take"}
"""A useless command -> the verb of the commands that it follows by habit."""


def demonstrate(
    world: World, instruction: str, seed: int, noise: float, habits: Mapping[str, float] | None = None
) -> list[tuple[Observation, str]]:
    """(observation, command) pairs of one episode.

    noise: chance of any admissible command in place of one that helps. habits: for each of `HABITS` the chance that the
    expert gives in to it. Without habits the demonstration is the same as with habits of chance 0.
    """
    if not 0.0 <= noise <= 1.0:
        raise ValueError(f"noise must be between 0 and 1, not {noise}")
    rng, habit_rng = random.Random(seed), random.Random(derive_seed(seed, "habits"))
    oracle, pairs = Oracle(world), list[tuple[Observation, str]]()
    text, verb = opening_text(world, instruction), ""
    while not oracle.won and len(pairs) < LIMIT:
        commands = oracle.episode.commands
        command = _by_habit(verb, habits or {}, habit_rng)
        if command is None:
            helpful = () if rng.random() < noise else oracle.helpful_commands()
            command = rng.choice(helpful or commands)
        pairs.append((Observation(text, commands), command))
        text, _ = oracle.step(command)
        verb = command.split()[0]
    return pairs


def _by_habit(verb: str, habits: Mapping[str, float], rng: random.Random) -> str | None:
    """The useless command that follows a command with this verb, if the expert gives in to the habit."""
    for command, after in HABITS.items():
        if after == verb and rng.random() < habits.get(command, 0.0):
            return command
    return None
