"""Demonstrations for the adapter: replies that make a task harder or easier."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import islice

from envs.alfworld.games.alfred import LAMP_CLASSES
from envs.alfworld.games.game import Game
from envs.alfworld.games.ids import class_of
from envs.alfworld.tasks.proposal import Wish, possible_tasks, wish_of
from envs.alfworld.tasks.rebuild import parse_proposal
from envs.alfworld.teacher.difficulty import expected_steps
from rlanything.core.types import Direction, InvalidProposal, Task

TRIES = 150
"""Changes tried for one demonstration. Most do not fit the room."""
ENOUGH = (1.0, 6.0)
"""A change of the expected number of commands in this range is accepted at once."""


def rewrite_task(task: Task, direction: Direction, seed: int) -> str:
    """A reply that `parse_proposal` accepts and whose task needs more (harder) or fewer (easier) expected commands.

    Where no change is in the range `ENOUGH`, the best one is taken. In up to three rooms of a hundred that needs as
    many. Raises `InvalidProposal` when the room allows none.
    """
    game = Game.from_payload(task.payload)
    rng = random.Random(seed)
    wishes = (_changed(game, direction, rng) for _ in range(TRIES))
    found = best_rewrite(task, direction, wishes, _parse_in_full)
    if found is None:
        raise InvalidProposal(
            f"task {task.task_id[:12]} cannot be made {direction}: its room allows no change"
        )
    return wish_of(found.game).line


@dataclass(frozen=True)
class Rewrite:
    """A reply, the game that it gives, and how many more (harder) or fewer (easier) commands that one needs."""

    line: str
    game: Game
    gain: float


def best_rewrite(
    task: Task, direction: Direction, wishes: Iterable[Wish], parse: Callable[[Task, str], Task]
) -> Rewrite | None:
    """The first of at most `TRIES` wishes with a gain in the range `ENOUGH`, or the one with the largest gain.

    None where `parse` accepts none of them.
    """
    before = expected_steps(Game.from_payload(task.payload))
    sign = 1 if direction is Direction.HARDER else -1
    best: Rewrite | None = None
    for wish in islice(wishes, TRIES):
        try:
            game = Game.from_payload(parse(task, wish.line).payload)
        except InvalidProposal:
            continue
        found = Rewrite(wish.line, game, sign * (expected_steps(game) - before))
        if ENOUGH[0] <= found.gain <= ENOUGH[1]:
            return found
        if best is None or found.gain > best.gain:
            best = found
    return best


def _parse_in_full(task: Task, line: str) -> Task:
    """The task of the line with all knobs as they come out, so that demonstrations have the same form."""
    full = wish_of(Game.from_payload(parse_proposal(task, line).payload)).line
    return parse_proposal(task, full)


def _changed(game: Game, direction: Direction, rng: random.Random) -> Wish:
    """The present wish with one to three changes; knobs change in the direction."""
    wish = wish_of(game)
    for change in rng.sample((_task, _object, _place, _copies, _hidden, _destinations), rng.randint(1, 3)):
        wish = change(wish, game, direction, rng)
    return wish


def _task(wish: Wish, game: Game, direction: Direction, rng: random.Random) -> Wish:
    task = rng.choice(possible_tasks(game))
    wish = replace(wish, task=task, destinations=None if task == "look" else wish.destinations)
    return _place(wish, game, direction, rng)


def _object(wish: Wish, game: Game, direction: Direction, rng: random.Random) -> Wish:
    return replace(wish, target=rng.choice(_classes(list(game.placements))), copies=None, hidden=None)


def _place(wish: Wish, game: Game, direction: Direction, rng: random.Random) -> Wish:
    lamps = [o for o in game.placements if class_of(o) in LAMP_CLASSES]
    choices = _classes(lamps if wish.task == "look" else list(game.receptacles))
    return replace(wish, receptacle=rng.choice(choices), destinations=None)


def _copies(wish: Wish, game: Game, direction: Direction, rng: random.Random) -> Wish:
    fewest = 2 if wish.task == "two" else 1
    return replace(wish, copies=fewest if direction is Direction.HARDER else rng.randint(fewest + 1, 4))


def _hidden(wish: Wish, game: Game, direction: Direction, rng: random.Random) -> Wish:
    return replace(wish, hidden=direction is Direction.HARDER)


def _destinations(wish: Wish, game: Game, direction: Direction, rng: random.Random) -> Wish:
    if wish.task == "look":
        return wish
    return replace(wish, destinations=1 if direction is Direction.HARDER else rng.randint(2, 3))


def _classes(ids: Sequence[str]) -> list[str]:
    return sorted({class_of(i).lower() for i in ids})
