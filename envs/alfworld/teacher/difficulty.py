"""The expected number of commands of a searching expert, in closed form."""

from __future__ import annotations

from envs.alfworld.games.game import Game
from envs.alfworld.play.planning import Planner
from envs.alfworld.play.world import World, compile_world
from envs.alfworld.teacher.oracle import Oracle


def expected_steps(game: Game) -> float:
    """The length of the shortest plan with everything known, plus the expected search for what the goal needs.

    Places are searched in random order, and m of them hold wanted things. A place that holds none is searched before
    the h-th find with probability h / (m + 1).
    """
    world = compile_world(game)
    everything = frozenset(range(len(world.objects)))
    plan = Planner(world).distance(world.initial, everything)
    return plan + _search(world)


def _search(world: World) -> float:
    state, wanted = world.initial, Oracle(world).wanted()
    targets = {r for o in world.targets for r in world.where(state, o)}
    lamps = {r for o in world.lamps for r in world.where(state, o)}
    finds = min(max(1, world.goal.copies), len(targets)) + (
        1 if world.goal.lamp and not targets & lamps else 0
    )
    places = targets | lamps
    chance = min(1.0, finds / (len(places) + 1))
    return sum(chance * (1 if world.is_open(state, r) else 2) for r in wanted - places)
