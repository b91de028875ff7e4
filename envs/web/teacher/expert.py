"""An expert that follows the goals of a kind, with random commands and habits on purpose.

A first policy imitates it. Random commands make that policy noisy, which a low temperature undoes. Habits make it
systematically wrong.
"""

from __future__ import annotations

import random
from collections.abc import Collection, Mapping

from envs.computer.actions import Action
from envs.computer.short import spell
from envs.web.browser.view import Item
from envs.web.kinds.scene import FIELDS, Scene, click
from envs.web.play.episode import Episode
from rlanything.core.seeds import derive_seed
from rlanything.core.types import Observation

HABITS = {
    "haste": "does what ends the task, such as a click on Submit, before everything that is asked for is done",
    "focus": "clicks on a text field before typing into it",
}
"""Habits of the demonstrations: what the expert does when it gives in to one."""

MOST_STEPS = 60
"""Steps after which a demonstration ends, whatever it has reached."""


def demonstrate(
    episode: Episode, seed: int, noise: float, habits: Mapping[str, float] | None = None
) -> list[tuple[Observation, str]]:
    """(observation, command) pairs from the start to the end.

    noise: the chance of a random admissible command. habits: for each of `HABITS` the chance that the expert gives in
    to it, at every step where it can. Without habits the demonstration is the same as with habits of chance 0.

    Among equally good commands one is drawn. At a dead end every command is as good as any other.
    """
    rng, habit_rng = random.Random(seed), random.Random(derive_seed(seed, "habits"))
    shown, text = list[tuple[Observation, str]](), episode.first
    while not episode.done and len(shown) < MOST_STEPS:
        commands = tuple(episode.commands)
        if not commands:
            break
        wanted = _wanted(episode)
        command = rng.choice(commands if not wanted or rng.random() < noise else wanted)
        command = _by_habit(episode, habits or {}, habit_rng) or command
        shown.append((Observation(text, commands), command))
        text = episode.step(command)
    return shown


def _wanted(episode: Episode) -> tuple[str, ...]:
    """The good commands, as the style writes them."""
    return _written(episode, episode.setting.kind.good(episode.scene))


def _written(episode: Episode, exact: Collection[str]) -> tuple[str, ...]:
    """Those of the admissible commands that are meant, as the style writes them."""
    return tuple(written for written, meant in episode.commands.items() if meant in exact)


def _by_habit(episode: Episode, habits: Mapping[str, float], rng: random.Random) -> str | None:
    """The command of the first habit that the expert gives in to, if any."""
    scene, good = episode.scene, episode.setting.kind.good(episode.scene)
    tempting = {
        "haste": set(episode.setting.kind.goals[-1].wants(scene)) - good.keys(),
        "focus": _unfocused(scene, good),
    }
    for habit, exact in tempting.items():
        commands = _written(episode, exact)
        if commands and rng.random() < habits.get(habit, 0.0):
            return rng.choice(commands)
    return None


def _unfocused(scene: Scene, good: Collection[str]) -> set[str]:
    """Clicks on the text fields that a good command types into, where that was not the last thing done."""
    fields = [item for item in scene.having(*FIELDS) if any(_types_into(item, command) for command in good)]
    last = scene.past[-1][1] if scene.past else None
    return {click(item) for item in fields if last is None or last.number != item.number}


def _types_into(item: Item, command: str) -> bool:
    return command.startswith(spell(Action("type", item.number)))
