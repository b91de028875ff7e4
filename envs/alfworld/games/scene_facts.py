"""The PDDL facts of a game, derived from its furniture and placements by ALFRED's tables."""

from __future__ import annotations

from envs.alfworld.games.alfred import LAMP_CLASSES, alfred
from envs.alfworld.games.game import Game
from envs.alfworld.games.ids import class_of

Fact = tuple[str, ...]
"""(predicate, argument, ..) with ALFRED's ids; types carry their suffix (`AppleType`)."""

AFFORDANCES = {
    "Cleanable": "cleanable",
    "Heatable": "heatable",
    "Coolable": "coolable",
    "Toggleable": "toggleable",
    "Sliceable": "sliceable",
}


def derived_facts(game: Game) -> list[Fact]:
    """The facts that the tables give, in the order in which they are written."""
    tables = alfred()
    classes = {o: class_of(o) for o in game.placements}
    kinds = {r: class_of(r) for r in game.receptacles}
    present = sorted(set(classes.values()))
    found: list[Fact] = [("receptacleType", r, f"{k}Type") for r, k in kinds.items()]
    found += [("objectType", o, f"{c}Type") for o, c in classes.items()]
    for kind in sorted(set(kinds.values())):
        found += [("canContain", f"{kind}Type", f"{c}Type") for c in present if tables.can_hold(kind, c)]
    found += [("pickupable", o) for o, c in classes.items() if c not in LAMP_CLASSES]
    found += [("isReceptacleObject", o) for o, c in classes.items() if c in tables.movable]
    found += [("openable", r) for r, k in kinds.items() if k in tables.openable]
    found.append(("atLocation", "agent1", game.start))
    for action, predicate in AFFORDANCES.items():
        found += [(predicate, o) for o, c in classes.items() if c in tables.affords[action]]
    found += [("inReceptacle", o, r) for o, r in game.placements.items()]
    found += [("objectAtLocation", o, game.receptacles[r]) for o, r in game.placements.items()]
    found += [("receptacleAtLocation", r, place) for r, place in game.receptacles.items()]
    return found


def all_facts(game: Game) -> list[Fact]:
    """The facts of the game: derived ones, less `removed`, plus `added`."""
    found = derived_facts(game)
    if game.removed:
        gone = {tuple(f.split(" ")) for f in game.removed}
        found = [f for f in found if f not in gone]
    return found + [tuple(f.split(" ")) for f in game.added]
