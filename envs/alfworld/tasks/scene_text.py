"""The facts of a scene in English, for an adapter that may change the two types of a goal and nothing else."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from envs.alfworld.games.alfred import TOOLS, alfred
from envs.alfworld.games.game import Game
from envs.alfworld.games.ids import class_of, display_names
from envs.alfworld.games.scene_facts import Fact, all_facts

_SEARCH = (
    "an object type of which the room has one instance, in a closed receptacle or in one of many alike; "
    "a receptacle type of which the room has one",
    "an object type with several instances, or one in sight; a receptacle type of which the room has several",
)
RUBRIC: Mapping[str, tuple[str, str]] = {
    "pick": _SEARCH,
    "clean": _SEARCH,
    "heat": _SEARCH,
    "cool": _SEARCH,
    "look": (
        "an object type of which the room has one instance, in a closed receptacle or far from the lamp",
        "an object type with several instances, or one that lies in sight or beside the lamp",
    ),
    "two": (
        "an object type with exactly two instances, in two receptacles of which one is closed",
        "an object type with more than two instances, or two that lie together or in sight",
    ),
}
"""For each kind of task, what makes it harder and what easier (paper, appendix C)."""


def scene_facts_text(game: Game) -> str:
    """Objects and receptacles with their instances, what can hold what, and what can be done to which object."""
    names = display_names([*game.receptacles, *game.placements])
    facts = all_facts(game)
    lines = ["Objects, by type, with the place of every instance:", *_objects(game, names)]
    lines += ["Receptacles, by type, with their names:", *_receptacles(game, names)]
    lines += ["What can be put where:", *_holders(game, facts)]
    able = {"cleaned": "cleanable", "heated": "heatable", "cooled": "coolable"}
    lines += [f"Can be {word}: {_listed(_classes_with(facts, name))}" for word, name in able.items()]
    tools = [f"a {tool.lower()} ({kind})" for kind, tool in TOOLS.items() if game.receptacles_of(tool)]
    return "\n".join([*lines, f"Tools in the room: {_listed(tools)}"])


def framework_text(game: Game) -> str:
    """The present task, what of it may change, and what makes a task of its kind harder or easier."""
    goal = game.goal
    second = "lamp" if goal.task == "look" else "receptacle"
    words = {"obj": "OBJECT", "recep": "RECEPTACLE", "toggle": "LAMP", "mrecep": ""}
    frame = alfred().goals[goal.task].templates[0].format(**words)
    harder, easier = RUBRIC[goal.task]
    return (
        f"The present task: {goal.sentences[0]}\n"
        f"Its framework: {frame}\n"
        f"Only two words may change: the type of the object and the type of the {second}. The framework, the room and "
        "everything in it stay.\n"
        f"Harder: {harder}\n"
        f"Easier: {easier}"
    )


def _objects(game: Game, names: Mapping[str, str]) -> list[str]:
    places: dict[str, list[str]] = defaultdict(list)
    for o, r in sorted(game.placements.items(), key=lambda item: names[item[0]]):
        places[class_of(o).lower()].append(f"{names[o]} in {names[r]}")
    return _by_type(places)


def _receptacles(game: Game, names: Mapping[str, str]) -> list[str]:
    there: dict[str, list[str]] = defaultdict(list)
    for r in sorted(game.receptacles, key=names.__getitem__):
        there[class_of(r).lower()].append(f"{names[r]}{' (closed)' if game.is_closed(r) else ''}")
    return _by_type(there)


def _by_type(found: Mapping[str, Sequence[str]]) -> list[str]:
    return [f"- {kind}, {len(items)}: {', '.join(items)}" for kind, items in sorted(found.items())]


def _holders(game: Game, facts: Iterable[Fact]) -> list[str]:
    held: dict[str, set[str]] = defaultdict(set)
    for predicate, *arguments in facts:
        if predicate == "canContain":
            receptacle, thing = (argument.removesuffix("Type").lower() for argument in arguments)
            held[receptacle].add(thing)
    kinds = sorted({class_of(r).lower() for r in game.receptacles})
    return [f"- {kind}: {_listed(sorted(held[kind]))}" for kind in kinds]


def _classes_with(facts: Iterable[Fact], predicate: str) -> list[str]:
    return sorted({class_of(fact[1]).lower() for fact in facts if fact[0] == predicate})


def _listed(words: Sequence[str]) -> str:
    return ", ".join(words) or "nothing"
