"""A searching expert: it knows only what it has seen, and may make mistakes on purpose."""

from __future__ import annotations

import random

from envs.alfworld.oracle import Oracle
from envs.alfworld.rules import opening_text
from envs.alfworld.world import World
from rlanything.core.types import Observation

LIMIT = 100
"""Demonstrations end here at the latest: with much noise an episode could go on for ever."""


def demonstrate(world: World, instruction: str, seed: int, noise: float) -> list[tuple[Observation, str]]:
    """(observation, command) pairs. Each command is good, or with probability `noise` any admissible one."""
    if not 0.0 <= noise <= 1.0:
        raise ValueError(f"noise must be between 0 and 1, not {noise}")
    rng = random.Random(seed)
    oracle = Oracle(world)
    text = opening_text(world, instruction)
    pairs: list[tuple[Observation, str]] = []
    while not oracle.won and len(pairs) < LIMIT:
        commands = oracle.play.commands
        good = () if rng.random() < noise else oracle.good_commands()
        command = rng.choice(good or commands)
        pairs.append((Observation(text, commands), command))
        text, _ = oracle.step(command)
    return pairs
