"""Changes a game as a wish asks: the same room, changed only where the goal and its knobs require it."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace

from envs.alfworld.games.alfred import alfred
from envs.alfworld.games.game import Game, GameError
from envs.alfworld.games.ids import class_of
from envs.alfworld.play.validate import why_unplayable
from envs.alfworld.tasks.generator import place_object, target_sites
from envs.alfworld.tasks.proposal import Wish, goal_of, read_wish, wish_of
from envs.alfworld.tasks.sampling import ENV
from rlanything.core.ids import content_id
from rlanything.core.types import InvalidProposal, Task

Change = Callable[[Game, Wish, random.Random], Game]
"""A game changed as a wish asks. Raises `InvalidProposal`."""


def parse_proposal(parent: Task, reply: str) -> Task:
    """The task that a reply asks for, in the parent's room. Raises `InvalidProposal`."""
    return rewritten(parent, reply, fit)


def rewritten(parent: Task, reply: str, change: Change) -> Task:
    """The task that a reply asks for, as `change` makes it; the same for the same parent and wish.

    Raises `InvalidProposal` for replies without a wish, and for wishes that are impossible, hold from the start or
    describe the parent.
    """
    try:
        game = Game.from_payload(parent.payload)
    except GameError as error:
        raise InvalidProposal(f"the parent is no game: {error}") from error
    wish = read_wish(reply, wish_of(game))
    rng = random.Random(content_id([parent.task_id, wish.line]))
    changed = change(game, wish, rng)
    if reason := why_unplayable(changed):
        raise InvalidProposal(reason)
    if replace(changed, annotated=game.annotated).payload == game.payload:  # its sentence is no change
        raise InvalidProposal("the proposal is the task that there is already")
    kept = changed.goal == game.goal and not game.annotated
    sentence = parent.instruction if kept else changed.goal.sentences[rng.randrange(2)]
    origin = {"split": parent.metadata.get("split", ""), "parent": parent.task_id, "wish": wish.line}
    return Task(ENV, sentence, changed.payload, origin)


def fit(game: Game, wish: Wish, rng: random.Random) -> Game:
    """The game changed as little as the wish allows. Raises `InvalidProposal`."""
    goal = goal_of(wish, game)
    now = wish_of(replace(game, goal=goal))
    new = replace(game, goal=goal, annotated=False)
    if wish.destinations is not None and goal.destination:
        new = _resize(new, goal.destination, wish.destinations, rng)
    copies = now.copies if wish.copies is None else wish.copies
    return _arrange(new, max(copies or 1, goal.copies), wish.hidden, rng)


def _arrange(game: Game, copies: int, hidden: bool | None, rng: random.Random) -> Game:
    """The game with exactly `copies` of the target, none at the destination.

    hidden: True: all in closed receptacles, False: at least one in sight, None: anywhere. Copies at an allowed place
    stay there.
    """
    sites = target_sites(game.receptacles, game.goal, hidden, game.is_closed)
    if not sites:
        where = {True: "closed ", False: "open ", None: ""}[hidden]
        raise InvalidProposal(f"no other {where}receptacle in the room can hold a {game.goal.target.lower()}")
    allowed = sites if hidden else target_sites(game.receptacles, game.goal, None)
    there = sorted(game.objects_of(game.goal.target), key=lambda o: game.placements[o] not in sites)
    settled = [o for o in there if game.placements[o] in allowed]
    keep = (settled + [o for o in there if o not in settled])[:copies]
    game = _without_objects(game, [o for o in there if o not in keep])
    placements = dict(game.placements)
    moved = [o for o in keep if o not in settled]
    if len(keep) == copies and not moved and placements[keep[0]] not in sites:
        moved = keep[:1]
    for o in moved:
        placements[o] = rng.choice(sites)
    for _ in range(copies - len(keep)):
        place_object(game.goal.target, sites, placements, rng)
    return _without_differences(replace(game, placements=placements), moved)


def _resize(game: Game, name: str, count: int, rng: random.Random) -> Game:
    """The room with `count` receptacles of class `name`: some taken out, or more of the floor plan's put in."""
    there = game.receptacles_of(name)
    if count <= len(there):
        return _without_receptacles(game, there[count:], rng)
    room = alfred().rooms.get(game.scene)
    spare = [r for r in room.receptacles if class_of(r) == name and r not in there] if room else []
    if len(there) + len(spare) < count:
        raise InvalidProposal(
            f"there are only {len(there) + len(spare)} {name.lower()} receptacles in this floor plan"
        )
    receptacles = dict(game.receptacles)
    for r in sorted(spare)[: count - len(there)]:
        receptacles[r] = _free_location(
            alfred().rooms[game.scene].receptacles[r], {*receptacles.values(), game.start}
        )
    return replace(game, receptacles=receptacles)


def _free_location(location: str, used: set[str]) -> str:
    """The location, moved along x until nothing else is there."""
    loc, x, *rest = location.split("|")
    column = int(x)
    while "|".join([loc, str(column), *rest]) in used:
        column += 1
    return "|".join([loc, str(column), *rest])


def _without_receptacles(game: Game, gone: list[str], rng: random.Random) -> Game:
    """The room without some receptacles. Their objects move, or go where nothing else can hold them."""
    receptacles = {r: place for r, place in game.receptacles.items() if r not in gone}
    placements: dict[str, str] = {}
    homeless: list[str] = []
    moved: list[str] = []
    for o, r in sorted(game.placements.items()):
        sites = [s for s in sorted(receptacles) if alfred().can_hold(class_of(s), class_of(o))]
        if r in receptacles:
            placements[o] = r
        elif sites:
            placements[o] = rng.choice(sites)
            moved.append(o)
        else:
            homeless.append(o)
    kept = _without_differences(game, [*gone, *moved, *homeless])
    return replace(kept, receptacles=receptacles, placements=placements)


def _without_objects(game: Game, gone: list[str]) -> Game:
    placements = {o: r for o, r in game.placements.items() if o not in gone}
    return replace(_without_differences(game, gone), placements=placements)


def _without_differences(game: Game, ids: list[str]) -> Game:
    """Drop the added and removed facts about things that were moved or removed."""

    def unrelated(fact: str) -> bool:
        return not {*fact.split(" ")} & {*ids}

    return replace(game, added=_kept(game.added, unrelated), removed=_kept(game.removed, unrelated))


def _kept(found: tuple[str, ...], test: Callable[[str], bool]) -> tuple[str, ...]:
    return tuple(f for f in found if test(f))
