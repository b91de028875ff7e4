"""A searching expert that knows only what it has seen, with a share of random commands on purpose."""

from __future__ import annotations

import random

from envs.alfworld.play.commands import opening_text
from envs.alfworld.play.world import World
from envs.alfworld.teacher.oracle import Oracle
from rlanything.core.types import Observation

LIMIT = 100
"""Most steps of a demonstration. With much noise an episode might never end."""


def demonstrate(world: World, instruction: str, seed: int, noise: float) -> list[tuple[Observation, str]]:
    """(observation, command) pairs. Commands are good ones or, with probability `noise`, any admissible one."""
    if not 0.0 <= noise <= 1.0:
        raise ValueError(f"noise must be between 0 and 1, not {noise}")
    rng = random.Random(seed)
    oracle = Oracle(world)
    text = opening_text(world, instruction)
    pairs: list[tuple[Observation, str]] = []
    while not oracle.won and len(pairs) < LIMIT:
        commands = oracle.episode.commands
        good = () if rng.random() < noise else oracle.good_commands()
        command = rng.choice(good or commands)
        pairs.append((Observation(text, commands), command))
        text, _ = oracle.step(command)
    return pairs
