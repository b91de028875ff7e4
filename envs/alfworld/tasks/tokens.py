"""The paper's edit of a text game: two type tokens of the goal change, its object and its receptacle, nothing else.

A reply is one line, of which the kind of task must stay as it is; for `look` the receptacle is the lamp:

    task: heat object: apple receptacle: countertop
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace

from envs.alfworld.games.alfred import LAMP_CLASSES
from envs.alfworld.games.game import Game
from envs.alfworld.games.ids import class_of
from envs.alfworld.games.scene_facts import all_facts
from envs.alfworld.tasks.proposal import Wish, goal_of, wish_of
from envs.alfworld.tasks.rebuild import rewritten
from envs.alfworld.tasks.rewrite import best_rewrite
from envs.alfworld.tasks.scene_text import framework_text, scene_facts_text
from rlanything.core.types import Direction, InvalidProposal, Task

_ONLY = "only the types of object and receptacle may change"


def describe_tokens(game: Game) -> str:
    """The facts of the scene and the framework of the goal in English, and last the present task as a reply."""
    return f"{scene_facts_text(game)}\n{framework_text(game)}\n{_line(wish_of(game))}"


def parse_tokens(parent: Task, reply: str) -> Task:
    """The parent's task with the object and the receptacle that a reply names. Raises `InvalidProposal`.

    A reply that changes anything else is refused, and so is one whose task cannot be solved in the room as it is.
    """
    return rewritten(parent, reply, _with_types)


def rewrite_tokens(task: Task, direction: Direction, seed: int) -> str:
    """A reply that `parse_tokens` accepts and whose task needs more (harder) or fewer (easier) expected commands.

    Raises `InvalidProposal` when the room holds no such pair of types.
    """
    game = Game.from_payload(task.payload)
    wishes = list(_wishes(game))
    random.Random(seed).shuffle(wishes)
    found = best_rewrite(task, direction, wishes, parse_tokens)
    if found is None or found.gain <= 0:
        raise InvalidProposal(f"task {task.task_id[:12]}: no other object and receptacle make it {direction}")
    return found.line


def _with_types(game: Game, wish: Wish, rng: random.Random) -> Game:
    """The game with the goal's two types as the wish has them. Raises `InvalidProposal`."""
    goal = game.goal
    if wish.task != goal.task:
        raise InvalidProposal(f"the kind of task must stay {goal.task}, not {wish.task}: {_ONLY}")
    knobs = {"copies": wish.copies, "hidden": wish.hidden, "destinations": wish.destinations}
    if given := [name for name, value in knobs.items() if value is not None]:
        raise InvalidProposal(f"the reply sets {' and '.join(given)}: {_ONLY}")
    new = goal_of(wish, game)
    loose = {fact[1] for fact in all_facts(game) if fact[0] == "pickupable"}
    there = len(loose.intersection(game.objects_of(new.target)))
    if there < max(1, new.copies):
        raise InvalidProposal(
            f"the task needs {max(1, new.copies)} {wish.target} that can be taken, and the room has {there}"
        )
    return game if new == goal else replace(game, goal=new, annotated=False)


def _wishes(game: Game) -> Iterator[Wish]:
    """Every pair of types that the room holds."""
    lamps = {class_of(o).lower() for o in game.placements if class_of(o) in LAMP_CLASSES}
    seconds = lamps if game.goal.task == "look" else {class_of(r).lower() for r in game.receptacles}
    for target in sorted({class_of(o).lower() for o in game.placements} - lamps):
        for second in sorted(seconds):
            yield Wish(game.goal.task, target, second)


def _line(wish: Wish) -> str:
    return Wish(wish.task, wish.target, wish.receptacle).line
