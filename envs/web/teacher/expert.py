"""An expert that follows the goals of a kind, and demonstrations with a share of random commands."""

from __future__ import annotations

import random

from envs.web.play.episode import Episode
from rlanything.core.types import Observation

MOST_STEPS = 60
"""Steps after which a demonstration ends, whatever it has reached."""


def demonstrate(episode: Episode, seed: int, noise: float) -> list[tuple[Observation, str]]:
    """(observation, command) pairs from the start to the end. noise: the chance of a random admissible command.

    Among equally good commands one is drawn. At a dead end every command is as good as any other.
    """
    rng, shown, text = random.Random(seed), list[tuple[Observation, str]](), episode.first
    while not episode.done and len(shown) < MOST_STEPS:
        commands = tuple(episode.commands)
        if not commands:
            break
        wanted = _wanted(episode)
        command = rng.choice(commands if not wanted or rng.random() < noise else wanted)
        shown.append((Observation(text, commands), command))
        text = episode.step(command)
    return shown


def _wanted(episode: Episode) -> tuple[str, ...]:
    """The good commands, as the style writes them."""
    good = episode.setting.kind.good(episode.scene)
    return tuple(written for written, exact in episode.commands.items() if exact in good)
