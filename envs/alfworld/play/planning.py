"""Lengths of shortest plans, in commands, for an agent that knows where some of the objects are.

Every command costs one. A plan never exchanges a held target for another copy of it.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import permutations

from envs.alfworld.play.world import NOTHING, Ints, State, World

MISSING = 1000
"""Added to a distance for each thing that must be found first. Longer than any plan."""


class Planner:
    """Distances in one world. `known` are the objects whose place the agent has seen."""

    def __init__(self, world: World) -> None:
        self.world = world
        self._tools = next(
            (tools for verb, tools, _ in world.treatable if verb == world.goal.task), frozenset()
        )
        self._loose = world.targets & world.pickupable
        self._open_to = [d for d in world.destinations if self._loose <= world.accepts[d]]
        """Destinations that may hold the target. A downloaded game may lack a fact that the tables have."""

    def distance(self, state: State, known: Ints) -> int:
        """Commands to the goal by the best plan; at least `MISSING` when something must be found first.

        In that case the rest (modulo `MISSING`) counts the commands to what can be done already: fetch a known target
        for `look`, or put away one of two. It is 0 when nothing can be done.
        """
        if self.world.is_won(state):
            return 0
        if state.held != NOTHING and state.held not in self.world.targets:
            return self._with_full_hands(state, known)
        return self._with_target_or_empty(state, known, state.place, state.opened)

    def _with_full_hands(self, state: State, known: Ints) -> int:
        """The distance while a useless object is held, which is put down first."""
        empty = state._replace(held=NOTHING)
        if self._with_target_or_empty(empty, known, state.place, state.opened) >= 2 * MISSING:
            return 2 * MISSING
        options = [2 * MISSING]
        for r in range(len(self.world.receptacles)):
            if state.held in self.world.accepts[r]:
                cost = self._reach(state.place, r) + self._unlock(state.opened, r) + 1
                rest = self._with_target_or_empty(empty, known, self.world.place_of[r], state.opened | {r})
                options.append(cost + rest)
        return min(options)

    def _with_target_or_empty(self, state: State, known: Ints, place: int, opened: Ints) -> int:
        if self.world.goal.task == "look":
            return self._look(state, known, place, opened)
        if self.world.goal.copies == 2:
            return self._put_two(state, known, place, opened)
        pairs = ((o, d) for o in self._candidates(state, known) for d in self._open_to)
        return min((self._deliver(state, o, place, opened, d)[0] for o, d in pairs), default=2 * MISSING)

    def _candidates(self, state: State, known: Ints) -> Iterable[int]:
        """Targets that may be used next: the held one, or every known one."""
        return (state.held,) if state.held != NOTHING else sorted(self._loose & known)

    def _deliver(
        self, state: State, o: int, place: int, opened: Ints, destination: int
    ) -> tuple[int, int, Ints]:
        """Cost of treating a target and bringing it to a destination; the place and open receptacles after it."""
        cost, place, opened = self._fetch(state, o, place, opened)
        if self._tools and o not in self.world.done(state):
            tool = min(self._tools, key=lambda t: self._via(place, t, destination))
            cost, place = cost + self._reach(place, tool) + 1, self.world.place_of[tool]
        cost += self._reach(place, destination) + self._unlock(opened, destination) + 1
        return cost, self.world.place_of[destination], opened | {destination}

    def _via(self, place: int, stop: int, end: int) -> int:
        return self._reach(place, stop) + self._reach(self.world.place_of[stop], end)

    def _fetch(self, state: State, o: int, place: int, opened: Ints) -> tuple[int, int, Ints]:
        """Cost of taking the object, 0 when it is held; the place and open receptacles after it."""
        if o == state.held:
            return 0, place, opened
        options = [
            (self._reach(place, r) + self._unlock(opened, r) + 1, r) for r in self.world.where(state, o)
        ]
        cost, r = min(options, default=(2 * MISSING, NOTHING))
        return (cost, self.world.place_of[r], opened | {r}) if r != NOTHING else (cost, place, opened)

    def _put_two(self, state: State, known: Ints, place: int, opened: Ints) -> int:
        """Cost of putting two copies into one destination, as far as known copies go."""
        options = [2 * MISSING]
        for d in self._open_to:
            there = state.inside[d] & self.world.targets & known
            missing = 2 - len(there)
            loose = sorted((self._loose & known | {state.held} - {NOTHING}) - there)
            orders = [
                p for p in permutations(loose, min(missing, len(loose))) if state.held in (NOTHING, *p[:1])
            ]
            for order in orders:
                cost, at, open_ = MISSING * (missing - len(order)), place, opened
                for o in order:
                    step, at, open_ = self._deliver(state, o, at, open_, d)
                    cost += step
                options.append(cost)
        return min(options)

    def _look(self, state: State, known: Ints, place: int, opened: Ints) -> int:
        lamps = sorted(self.world.lamps & known)
        options = [2 * MISSING]
        for o in self._candidates(state, known):
            cost, at, _ = self._fetch(state, o, place, opened)
            options.append(cost + MISSING)
            for lamp in lamps:
                switch = 0 if lamp in state.toggled else 1
                options += [cost + self._reach(at, r) + switch for r in self.world.where(state, lamp)]
        return min(options)

    def _reach(self, place: int, r: int) -> int:
        return 0 if self.world.place_of[r] == place else 1

    def _unlock(self, opened: Ints, r: int) -> int:
        return 1 if r in self.world.openable and r not in opened else 0
