"""Checks of a task: it parses, its instruction says its goal, and it is solvable but not solved."""

from __future__ import annotations

from envs.alfworld.games.game import Game, GameError
from envs.alfworld.play.planning import MISSING, Planner
from envs.alfworld.play.world import compile_world
from rlanything.core.types import Task


def why_invalid(task: Task) -> str:
    """Why a task must not be tried, in one sentence, or ''."""
    try:
        game = Game.from_payload(task.payload)
    except GameError as error:
        return str(error)
    if not game.annotated and task.instruction not in game.goal.sentences:
        return f"the instruction {task.instruction!r} does not say the goal: {game.goal.sentences[0]}"
    if task.payload["knobs"] != game.knobs:
        return f"the knobs {task.payload['knobs']} are not those of the scene: {game.knobs}"
    return why_unplayable(game)


def why_unplayable(game: Game) -> str:
    """Why the game cannot be solved or is solved from the start, or ''."""
    try:
        world = compile_world(game)
    except GameError as error:
        return str(error)
    if world.is_won(world.initial):
        return "the goal holds from the start"
    if missing := _missing(game):
        return missing
    everything = frozenset(range(len(world.objects)))
    if Planner(world).distance(world.initial, everything) >= MISSING:
        return "the goal cannot be reached"
    return ""


def _missing(game: Game) -> str:
    """The usual reasons for an unsolvable game."""
    goal = game.goal
    if goal.task != "look" and not game.receptacles_of(goal.destination):
        return f"there is no {goal.destination.lower()} in the room"
    if goal.tool and not game.receptacles_of(goal.tool):
        return f"there is no {goal.tool.lower()} in the room"
    return ""
