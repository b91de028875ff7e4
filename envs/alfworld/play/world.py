"""A game compiled for play: things are small integers, in the order in which the real engine lists them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from envs.alfworld.games.alfred import KNIFE_CLASSES, TOOLS
from envs.alfworld.games.game import Game, GameError, Goal
from envs.alfworld.games.ids import display_names, sort_key
from envs.alfworld.games.scene_facts import all_facts

NOTHING = -1
"""The value of `State.held` when nothing is held."""

Ints = frozenset[int]


class State(NamedTuple):
    """The state of an episode. Immutable: an action gives a new state that shares what did not change."""

    place: int
    held: int
    opened: Ints
    inside: tuple[Ints, ...]
    """Objects in each receptacle. An object may be in two (a mug on the counter and in the coffee machine)."""
    clean: Ints
    hot: Ints
    cool: Ints
    toggled: Ints
    sliced: Ints
    beside: frozenset[tuple[int, int]]
    """(object, place): ALFRED's objectAtLocation; needed for `slice` and `look`."""
    left: frozenset[tuple[int, int]]
    """(object, receptacle) it was taken from. The real engine's `look` lists these when the object is near."""


@dataclass(frozen=True, slots=True)
class World:
    """What never changes during an episode. Integers are indices into `objects`, `receptacles` and places."""

    goal: Goal
    objects: tuple[str, ...]
    receptacles: tuple[str, ...]
    object_names: tuple[str, ...]
    receptacle_names: tuple[str, ...]
    object_classes: tuple[str, ...]
    receptacle_classes: tuple[str, ...]
    place_of: tuple[int, ...]
    """Place of each receptacle."""
    receptacles_at: tuple[tuple[int, ...], ...]
    """Receptacles at each place; the start usually has none."""
    openable: Ints
    accepts: tuple[Ints, ...]
    """Objects that each receptacle may hold."""
    pickupable: Ints
    toggleable: Ints
    sliceable: Ints
    knives: Ints
    movable: Ints
    nested: tuple[tuple[str, ...], ...]
    """Names of what lies in each movable receptacle (a spoon in a mug)."""
    treatable: tuple[tuple[str, Ints, Ints], ...]
    """(verb, receptacles that do it, objects that allow it) for heat, cool and clean."""
    targets: Ints
    destinations: Ints
    lamps: Ints
    initial: State

    def is_open(self, state: State, receptacle: int) -> bool:
        """Whether the agent can see and reach into it."""
        return receptacle not in self.openable or receptacle in state.opened

    def where(self, state: State, thing: int) -> list[int]:
        """Receptacles that the object is in."""
        return [r for r, content in enumerate(state.inside) if thing in content]

    def is_won(self, state: State) -> bool:
        """Whether the goal holds."""
        task = self.goal.task
        if task == "look":
            if state.held not in self.targets:
                return False
            lit = state.toggled & self.lamps
            return any(state.inside[r] & lit for r in self.receptacles_at[state.place])
        done = self.done(state)
        return any(len(state.inside[r] & done) >= self.goal.copies for r in self.destinations)

    def done(self, state: State) -> Ints:
        """Targets that are treated as the goal asks; they only have to be put away."""
        treated = {"clean": state.clean, "heat": state.hot, "cool": state.cool}.get(self.goal.task)
        return self.targets if treated is None else self.targets & treated


class _Index:
    """Facts by predicate, and things as integers."""

    def __init__(self, game: Game) -> None:
        self.by_predicate: dict[str, list[tuple[str, ...]]] = defaultdict(list)
        for predicate, *arguments in all_facts(game):
            self.by_predicate[predicate].append(tuple(arguments))
        self.kind = {r: k.removesuffix("Type") for r, k in self.by_predicate["receptacleType"]}
        self.klass = {o: c.removesuffix("Type") for o, c in self.by_predicate["objectType"]}
        self.receptacles = sorted(self.kind, key=sort_key)
        self.objects = sorted(self.klass, key=sort_key)
        self.number = {r: i for i, r in enumerate(self.receptacles)}
        self.number |= {o: i for i, o in enumerate(self.objects)}
        places = dict.fromkeys(p for _, p in self.by_predicate["receptacleAtLocation"])
        places |= dict.fromkeys(p for (_, p) in self.by_predicate["atLocation"])
        self.places = {p: i for i, p in enumerate(places)}

    def of(self, predicate: str) -> Ints:
        """Numbers of the things that a one-place predicate holds for."""
        return frozenset(self.number[a] for (a,) in self.by_predicate[predicate] if a in self.number)

    def place_of(self) -> tuple[int, ...]:
        """Place of each receptacle. Raises `GameError` when one has none or two."""
        found: dict[str, int] = {}
        for r, place in self.by_predicate["receptacleAtLocation"]:
            if found.setdefault(r, self.places[place]) != self.places[place]:
                raise GameError(f"{r} is at two locations")
        if missing := [r for r in self.receptacles if r not in found]:
            raise GameError(f"{missing[0]} has no location")
        return tuple(found[r] for r in self.receptacles)

    def groups(self, pairs: Iterable[tuple[str, ...]], size: int) -> list[set[int]]:
        """(member, group) pairs as one set of member numbers for each group number."""
        found: list[set[int]] = [set() for _ in range(size)]
        for member, group in pairs:
            if member in self.number and group in self.number:
                found[self.number[group]].add(self.number[member])
        return found


def compile_world(game: Game) -> World:
    """The game ready for play. Raises `GameError` when its facts contradict each other."""
    index = _Index(game)
    names = display_names((*index.receptacles, *index.objects))
    place_of = index.place_of()
    klasses = tuple(index.klass[o] for o in index.objects)
    kinds = tuple(index.kind[r] for r in index.receptacles)
    goal = game.goal
    return World(
        goal=goal,
        objects=tuple(index.objects),
        receptacles=tuple(index.receptacles),
        object_names=tuple(names[o] for o in index.objects),
        receptacle_names=tuple(names[r] for r in index.receptacles),
        object_classes=klasses,
        receptacle_classes=kinds,
        place_of=place_of,
        receptacles_at=tuple(
            tuple(r for r, at in enumerate(place_of) if at == place) for place in range(len(index.places))
        ),
        openable=index.of("openable"),
        accepts=_accepts(index, kinds, klasses),
        pickupable=index.of("pickupable"),
        toggleable=index.of("toggleable"),
        sliceable=index.of("sliceable"),
        knives=_numbers(klasses, KNIFE_CLASSES),
        movable=index.of("isReceptacleObject"),
        nested=_nested(index, names),
        treatable=tuple(
            (verb, _numbers(kinds, (TOOLS[verb],)), index.of(allowed))
            for verb, allowed in (("heat", "heatable"), ("cool", "coolable"), ("clean", "cleanable"))
        ),
        targets=_targets(goal, klasses, index),
        destinations=_numbers(kinds, (goal.destination,)),
        lamps=_numbers(klasses, (goal.lamp,)) & index.of("toggleable"),
        initial=_initial(index),
    )


def _numbers(names: Sequence[str], wanted: Sequence[str]) -> Ints:
    return frozenset(i for i, name in enumerate(names) if name in wanted)


def _targets(goal: Goal, klasses: Sequence[str], index: _Index) -> Ints:
    """Objects that can satisfy the goal: of its class, and treatable where it asks for a treatment."""
    allowed = {"heat": "heatable", "cool": "coolable", "clean": "cleanable"}.get(goal.task)
    found = _numbers(klasses, (goal.target,))
    return found & index.of(allowed) if allowed else found


def _accepts(index: _Index, kinds: Sequence[str], klasses: Sequence[str]) -> tuple[Ints, ...]:
    allowed = set(index.by_predicate["canContain"])
    by_kind = {
        kind: frozenset(o for o, c in enumerate(klasses) if (f"{kind}Type", f"{c}Type") in allowed)
        for kind in set(kinds)
    }
    return tuple(by_kind[kind] for kind in kinds)


def _nested(index: _Index, names: dict[str, str]) -> tuple[tuple[str, ...], ...]:
    groups = index.groups(index.by_predicate["inReceptacleObject"], len(index.objects))
    return tuple(tuple(names[index.objects[o]] for o in sorted(group)) for group in groups)


def _initial(index: _Index) -> State:
    starts = [p for _, p in index.by_predicate["atLocation"]]
    if len(starts) != 1:
        raise GameError(f"the agent starts at {len(starts)} locations")
    return State(
        place=index.places[starts[0]],
        held=NOTHING,
        opened=index.of("opened"),
        inside=tuple(
            map(frozenset, index.groups(index.by_predicate["inReceptacle"], len(index.receptacles)))
        ),
        clean=index.of("isClean"),
        hot=index.of("isHot"),
        cool=index.of("isCool"),
        toggled=index.of("isToggled"),
        sliced=index.of("isSliced"),
        beside=frozenset(
            (index.number[o], index.places[p])
            for o, p in index.by_predicate["objectAtLocation"]
            if o in index.number and p in index.places
        ),
        left=frozenset(),
    )
