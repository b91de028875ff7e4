"""A game as PDDL: writing the problem of initial_state.pddl, and reading one back."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

from envs.alfworld.games.alfred import alfred
from envs.alfworld.games.game import PREDICATES, Game, GameError, Goal
from envs.alfworld.games.ids import from_pddl, to_pddl
from envs.alfworld.games.scene_facts import Fact, all_facts, derived_facts

_INDENT = "\n        "
_TOKEN = re.compile(r";[^\n]*|[()]|[^\s();]+")
_IGNORED = frozenset(
    {"=", "wasInReceptacle", "checked", "examined", "moveable", "isOn", "full", "isReceptacleObjectFull"}
)
"""Predicates that affect neither text nor commands."""


def goal_pddl(goal: Goal) -> str:
    """ALFRED's goal section; its last parenthesis closes the problem."""
    words = {"obj": goal.target, "recep": goal.destination, "toggle": goal.lamp, "mrecep": ""}
    return to_pddl(alfred().goals[goal.task].pddl.format(**words))


def problem_pddl(game: Game, name: str) -> str:
    """The whole problem as initial_state.pddl has it. `name` is the trial's (letters, digits, `_`)."""
    tables = alfred()
    found = all_facts(game)
    places = {f[2] for f in found if f[0] in ("receptacleAtLocation", "objectAtLocation")} | {game.start}
    declared = ["agent1 # agent"]
    declared += [f"{c}Type # otype" for c in tables.object_classes]
    declared += [f"{c}Type # rtype" for c in tables.receptacle_classes]
    declared += [f"{f[1]} # object" for f in found if f[0] == "objectType"]
    declared += [f"{f[1]} # receptacle" for f in found if f[0] == "receptacleType"]
    declared += [f"{p} # location" for p in sorted(places)]
    initial = [f"({' '.join(f)})" for f in found]
    head = f"\n(define (problem plan_{name})\n(:domain alfred)\n"
    lists = f"(:objects{_INDENT}{_INDENT.join(declared)}\n)\n(:init{_INDENT}{_INDENT.join(initial)}\n)\n"
    return to_pddl(head + lists) + goal_pddl(game.goal)


def parse_problem(text: str, scene: int, goal: Goal, annotated: bool = False) -> Game:
    """The game in an initial_state.pddl. Raises `GameError` when it is truncated, malformed, or has another goal."""
    sections = _sections(text)
    if sections.get(":goal") != _sections(f"(define {goal_pddl(goal)}")[":goal"]:
        raise GameError("the goal of the PDDL problem is not the one that traj_data.json names")
    found = _relevant([_fact(f) for f in sections.get(":init", [])])
    by_predicate: dict[str, list[Fact]] = defaultdict(list)
    for fact in found:
        by_predicate[fact[0]].append(fact)
    receptacles = {r: place for _, r, place in by_predicate["receptacleAtLocation"]}
    starts = [f[2] for f in by_predicate["atLocation"]]
    if len(starts) != 1:
        raise GameError(f"the agent starts at {len(starts)} locations")
    placements = _placements(by_predicate["inReceptacle"], by_predicate["objectAtLocation"], receptacles)
    plain = Game(scene, goal, receptacles, placements, starts[0])
    plain.check_ids()  # facts are derived from ids that fit together
    return _with_differences(plain, found, annotated)


def _with_differences(plain: Game, found: list[Fact], annotated: bool) -> Game:
    """The game with `added` and `removed` set so that it has exactly the facts that were found."""
    derived = set(derived_facts(plain))
    added = tuple(sorted(" ".join(f) for f in set(found) - derived))
    removed = tuple(sorted(" ".join(f) for f in derived - set(found)))
    game = Game(
        plain.scene, plain.goal, plain.receptacles, plain.placements, plain.start, added, removed, annotated
    )
    game.check_ids()
    return game


def _placements(inside: list[Fact], located: list[Fact], receptacles: dict[str, str]) -> dict[str, str]:
    """Object -> a receptacle that it is in; of several, one at the object's location."""
    at = {(o, place) for _, o, place in located}
    placements: dict[str, str] = {}
    for _, o, r in sorted(inside, key=lambda f: ((f[1], receptacles.get(f[2])) not in at, f[2])):
        placements.setdefault(o, r)
    return placements


def _fact(node: Any) -> Fact:
    if not isinstance(node, list) or not node or isinstance(node[0], list):
        raise GameError(f"{node if isinstance(node, str) else '(..)'} in :init is no fact")
    return tuple(from_pddl(a) if isinstance(a, str) else "" for a in node)


def _relevant(found: list[Fact]) -> list[Fact]:
    """The facts with known predicates, and `canContain` only of classes in the room."""
    for fact in found:
        if PREDICATES.get(fact[0]) != len(fact) - 1 and fact[0] not in _IGNORED:
            raise GameError(f"({' '.join(fact)}) is not a fact of ALFRED")
    kinds = {f[2] for f in found if f[0] in ("receptacleType", "objectType")}
    return [f for f in found if f[0] in PREDICATES and (f[0] != "canContain" or {*f[1:]} <= kinds)]


def _sections(text: str) -> dict[str, list[Any]]:
    """`:init`, `:goal` and so on of a problem. Raises `GameError` when its parentheses do not balance."""
    tokens = (t for t in _TOKEN.findall(text) if not t.startswith(";"))
    trees = list(_trees(tokens))
    if len(trees) != 1 or not isinstance(trees[0], list) or trees[0][:1] != ["define"]:
        raise GameError("the PDDL problem is not one (define ..)")
    return {s[0]: s[1:] for s in trees[0][1:] if isinstance(s, list) and s and isinstance(s[0], str)}


def _trees(tokens: Iterator[str]) -> Iterator[Any]:
    """Nested lists of symbols."""
    stack: list[list[Any]] = []
    for token in tokens:
        if token == "(":
            stack.append([])
        elif token == ")":
            if not stack:
                raise GameError("the PDDL problem closes a parenthesis too many")
            done = stack.pop()
            if stack:
                stack[-1].append(done)
            else:
                yield done
        elif stack:
            stack[-1].append(token)
    if stack:
        raise GameError(f"the PDDL problem is truncated: {len(stack)} parentheses are open at its end")
