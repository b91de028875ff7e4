"""Whether the knobs change difficulty: `python -m benchmarks.alfworld_difficulty [games per row]`.

Each row changes one knob of the same base recipe. `steps` is the mean number of commands of the noise-free searching
expert, `expected` the closed form of `difficulty`, `within 15` the share of games that an expert with half of its
commands drawn at random solves in 15.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator
from dataclasses import replace
from statistics import mean

from envs.alfworld.games.alfred import TASK_TYPES, alfred
from envs.alfworld.games.game import Game
from envs.alfworld.play.world import compile_world
from envs.alfworld.tasks.generator import InfeasibleError, Recipe, generate
from envs.alfworld.teacher.difficulty import expected_steps
from envs.alfworld.teacher.expert import demonstrate

BASE = Recipe(task="pick", receptacles=8, distractors=6, copies=1, hidden=None, destinations=1)
ROWS: list[tuple[str, Recipe]] = [
    ("base", BASE),
    *((f"task: {task}", replace(BASE, task=task)) for task in TASK_TYPES if task != "pick"),
    *((f"receptacles: {n}", replace(BASE, receptacles=n)) for n in (5, 12, 18)),
    *((f"distractors: {n}", replace(BASE, distractors=n)) for n in (0, 16)),
    *((f"copies: {n}", replace(BASE, copies=n)) for n in (2, 4)),
    *((f"hidden: {'yes' if flag else 'no'}", replace(BASE, hidden=flag)) for flag in (False, True)),
    *((f"destinations: {n}", replace(BASE, destinations=n)) for n in (2, 4)),
]


def games(recipe: Recipe, count: int) -> list[Game]:
    """`count` games of a recipe in the training floor plans that are large enough for it."""
    rng = random.Random("measure")
    rooms = [
        r
        for r in alfred().rooms.values()
        if r.split == "train" and r.kind in alfred().goals[recipe.task].rooms
    ]
    rooms = [r for r in rooms if len(r.receptacles) >= recipe.receptacles]
    found: list[Game] = []
    while len(found) < count:
        try:
            found.append(generate(rng.choice(rooms), recipe, rng))
        except InfeasibleError:
            continue
    return found


def measured(recipe: Recipe, count: int) -> tuple[float, float, float]:
    """(mean steps of the expert, their closed form, share solved within 15 with noise 0.5)."""
    made = games(recipe, count)
    worlds = [compile_world(game) for game in made]
    steps = mean(len(demonstrate(w, "", seed, 0.0)) for seed, w in enumerate(worlds))
    solved = mean(len(demonstrate(w, "", seed, 0.5)) <= 15 for seed, w in enumerate(worlds))
    return steps, mean(expected_steps(game) for game in made), solved


def table(count: int) -> Iterator[str]:
    """The lines of the table."""
    yield f"{'':18}{'steps':>8}{'expected':>10}{'within 15':>11}"
    for name, recipe in ROWS:
        steps, expected, solved = measured(recipe, count)
        yield f"{name:18}{steps:8.1f}{expected:10.1f}{solved:11.0%}"


if __name__ == "__main__":
    for line in table(int(sys.argv[1]) if len(sys.argv) > 1 else 200):
        print(line)
