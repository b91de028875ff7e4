"""A game as PDDL: writing the problem, and the goal's text."""

from __future__ import annotations

from envs.alfworld.facts import facts
from envs.alfworld.game import Game, Goal
from envs.alfworld.ids import to_pddl
from envs.alfworld.scenefacts import all_facts

_INDENT = "\n        "


def goal_pddl(goal: Goal) -> str:
    """ALFRED's goal section, closing the problem."""
    words = {"obj": goal.target, "recep": goal.destination, "toggle": goal.lamp, "mrecep": ""}
    return to_pddl(facts().goals[goal.task].pddl.format(**words))


def problem_pddl(game: Game, name: str) -> str:
    """The whole problem as initial_state.pddl has it. `name` is the trial's (letters, digits, `_`)."""
    tables = facts()
    found = all_facts(game)
    places = sorted(
        {f[2] for f in found if f[0] in ("receptacleAtLocation", "objectAtLocation")} | {game.start}
    )
    declared = ["agent1 # agent"]
    declared += [f"{c}Type # otype" for c in tables.object_classes]
    declared += [f"{c}Type # rtype" for c in tables.receptacle_classes]
    declared += [f"{f[1]} # object" for f in found if f[0] == "objectType"]
    declared += [f"{f[1]} # receptacle" for f in found if f[0] == "receptacleType"]
    declared += [f"{p} # location" for p in places]
    initial = [f"({' '.join(f)})" for f in found]
    return to_pddl(
        f"\n(define (problem plan_{name})\n(:domain alfred)\n(:objects{_INDENT}{_INDENT.join(declared)}\n)\n"
        f"(:init{_INDENT}{_INDENT.join(initial)}\n)\n"
    ) + goal_pddl(game.goal)
