"""Draws distinct generated tasks for a split, with given shares of task types and levels."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from envs.alfworld.games.alfred import Room, alfred
from envs.alfworld.games.game import Game
from envs.alfworld.play.validate import why_unplayable
from envs.alfworld.tasks.generator import InfeasibleError, Recipe, generate
from envs.alfworld.tasks.levels import LEVELS
from envs.alfworld.teacher.difficulty import expected_steps
from envs.settings import Range
from rlanything.core.seeds import derive_seed
from rlanything.core.types import Task

ENV = "alfworld"
TRIES = 300
"""Draws for one task before the settings are called impossible."""


@dataclass(frozen=True)
class Mixture:
    """What the tasks of a split are drawn from."""

    floor_plans: str
    receptacles: Range
    distractors: Range
    task_types: Mapping[str, float]
    levels: Mapping[str, float]


def task_of(game: Game, sentence: int = 0, metadata: Mapping[str, Any] | None = None) -> Task:
    """The game as a task; `sentence` picks one of the goal's two sentences."""
    return Task(ENV, game.goal.sentences[sentence], game.payload, metadata or {})


def draw_tasks(split: str, count: int, seed: int, mixture: Mixture) -> list[Task]:
    """`count` distinct tasks; the same for the same arguments. Raises `ValueError` when the settings allow none."""
    order = random.Random(derive_seed(seed, "alfworld/order", split))
    types = spread(mixture.task_types, count, order)
    levels = spread(mixture.levels, count, order)
    tasks: dict[str, Task] = {}
    for index, (kind, level) in enumerate(zip(types, levels, strict=True)):
        task = _draw(split, index, seed, kind, level, mixture, tasks)
        tasks[task.task_id] = task
    return list(tasks.values())


def spread(shares: Mapping[str, float], count: int, rng: random.Random) -> list[str]:
    """`count` names in random order, as near to their shares as whole numbers allow."""
    total = sum(shares.values())
    exact = {name: share * count / total for name, share in shares.items()}
    names = [name for name, number in exact.items() for _ in range(int(number))]
    by_rest = sorted(exact, key=lambda name: (int(exact[name]) - exact[name], rng.random()))
    names += by_rest[: count - len(names)]
    rng.shuffle(names)
    return names


def _draw(
    split: str, index: int, seed: int, kind: str, level: str, mixture: Mixture, taken: Mapping[str, Task]
) -> Task:
    rooms = _rooms(kind, mixture)
    for attempt in range(TRIES if rooms else 0):
        draw = derive_seed(seed, "alfworld/task", split, index, attempt)
        rng = random.Random(draw)
        recipe = _recipe(kind, level, mixture, rng)
        try:
            game = generate(rng.choice(rooms), recipe, rng)
        except InfeasibleError:
            continue
        if len(game.receptacles) < mixture.receptacles[0] or why_unplayable(game):
            continue
        origin = {
            "split": split,
            "level": level,
            "seed": draw,
            "expected_steps": round(expected_steps(game), 1),
        }
        task = task_of(game, rng.randrange(2), origin)
        if task.task_id not in taken:
            return task
    raise ValueError(f"no {mixture.floor_plans} room gives a {level} {kind!r} task with these settings")


def _rooms(kind: str, mixture: Mixture) -> Sequence[Room]:
    allowed = alfred().goals[kind].rooms
    rooms = [r for r in alfred().rooms.values() if r.split == mixture.floor_plans and r.kind in allowed]
    return [r for r in rooms if len(r.receptacles) >= mixture.receptacles[0]]


def _recipe(kind: str, level: str, mixture: Mixture, rng: random.Random) -> Recipe:
    knobs = LEVELS[level]
    return Recipe(
        task=kind,
        receptacles=rng.randint(*mixture.receptacles),
        distractors=rng.randint(*mixture.distractors),
        copies=rng.randint(*knobs.copies),
        hidden=knobs.hidden,
        destinations=rng.randint(*knobs.destinations),
    )
