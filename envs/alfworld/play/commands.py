"""Commands: which are admissible, what they do, and the text that the player reads. Pure functions.

Text and commands equal the real engine's letter by letter; tests compare them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from envs.alfworld.play.world import NOTHING, State, World

WELCOME = "-= Welcome to TextWorld, ALFRED! =-"
REFUSAL = "Nothing happens."
HELP = """Available commands:
  look:                             look around your current location
  inventory:                        check your current inventory
  go to (receptacle):               move to a receptacle
  open (receptacle):                open a receptacle
  close (receptacle):               close a receptacle
  take (object) from (receptacle):  take an object from a receptacle
  move (object) to (receptacle):  place an object in or on a receptacle
  examine (something):              examine a receptacle or an object
  use (object):                     use an object
  heat (object) with (receptacle):  heat an object using a receptacle
  clean (object) with (receptacle): clean an object using a receptacle
  cool (object) with (receptacle):  cool an object using a receptacle
  slice (object) with (object):     slice an object using a sharp object
"""


class Act(NamedTuple):
    """A parsed command. `thing` and `receptacle` are indices, -1 where unused."""

    verb: str
    thing: int = -1
    receptacle: int = -1


LOOK, INVENTORY, ASK = Act("look"), Act("inventory"), Act("help")


def local_acts(world: World, state: State) -> dict[str, Act]:
    """The admissible commands except `go to`, unordered."""
    acts = {"look": LOOK, "inventory": INVENTORY, "help": ASK}
    for r in world.receptacles_at[state.place]:
        _receptacle_acts(world, state, r, acts)
    if state.held != NOTHING:
        acts[f"examine {world.object_names[state.held]}"] = Act("examine", thing=state.held)
        _slice_acts(world, state, acts)
    return acts


def travel_acts(world: World, place: int) -> dict[str, Act]:
    """The `go to` commands at a place, in alphabetical order."""
    names = world.receptacle_names
    elsewhere = [r for r, at in enumerate(world.place_of) if at != place]
    return {f"go to {names[r]}": Act("go", receptacle=r) for r in sorted(elsewhere, key=names.__getitem__)}


def _receptacle_acts(world: World, state: State, r: int, acts: dict[str, Act]) -> None:
    """Add the commands for a receptacle that the agent stands at."""
    name, held, content = world.receptacle_names[r], state.held, state.inside[r]
    acts[f"examine {name}"] = Act("examine", receptacle=r)
    if r in world.openable:
        verb = "close" if r in state.opened else "open"
        acts[f"{verb} {name}"] = Act(verb, receptacle=r)
    for o in content & world.toggleable:
        acts[f"use {world.object_names[o]}"] = Act("use", o, r)
    if held == NOTHING:
        if world.is_open(state, r):
            for o in content & world.pickupable:
                acts[f"take {world.object_names[o]} from {name}"] = Act("take", o, r)
        return
    if held in world.accepts[r] and world.is_open(state, r):
        acts[f"move {world.object_names[held]} to {name}"] = Act("move", held, r)
    for verb, tools, objects in world.treatable:
        if r in tools and held in objects:
            acts[f"{verb} {world.object_names[held]} with {name}"] = Act(verb, held, r)


def _slice_acts(world: World, state: State, acts: dict[str, Act]) -> None:
    if state.held in world.knives and world.sliceable:
        for o in world.sliceable:
            if (o, state.place) in state.beside:
                acts[f"slice {world.object_names[o]} with {world.object_names[state.held]}"] = Act("slice", o)


def apply(world: World, state: State, act: Act) -> State:
    """The state after an admissible act."""
    verb, o, r = act
    if verb == "go":
        return state._replace(place=world.place_of[r])
    if verb == "open":
        return state._replace(opened=state.opened | {r})
    if verb == "close":
        return state._replace(opened=state.opened - {r})
    if verb == "take":
        inside = (*state.inside[:r], state.inside[r] - {o}, *state.inside[r + 1 :])
        gone = {(o, state.place)}
        return state._replace(held=o, inside=inside, beside=state.beside - gone, left=state.left | {(o, r)})
    if verb == "move":
        inside = (*state.inside[:r], state.inside[r] | {o}, *state.inside[r + 1 :])
        near = {(o, state.place)}
        return state._replace(
            held=NOTHING, inside=inside, beside=state.beside | near, left=state.left - {(o, r)}
        )
    if verb == "clean":
        return state._replace(clean=state.clean | {o})
    if verb == "heat":
        return state._replace(hot=state.hot | {o}, cool=state.cool - {o})
    if verb == "cool":
        return state._replace(cool=state.cool | {o}, hot=state.hot - {o})
    if verb == "use":
        return state._replace(toggled=state.toggled | {o})
    if verb == "slice":
        return state._replace(sliced=state.sliced | {o})
    return state


def feedback(world: World, state: State, act: Act) -> str:
    """The text after `act` led to `state`."""
    verb, o, r = act
    things, names = world.object_names, world.receptacle_names
    if verb == "go":
        return f"You arrive at {names[r]}. {receptacle_text(world, state, r)}"
    if verb == "open":
        return f"You open the {names[r]}. {receptacle_text(world, state, r)}"
    if verb == "close":
        return f"You close the {names[r]}."
    if verb == "take":
        return f"You pick up the {things[o]} from the {names[r]}."
    if verb == "move":
        return f"You move the {things[o]} to the {names[r]}."
    if verb in ("clean", "heat", "cool"):
        return f"You {verb} the {things[o]} using the {names[r]}."
    if verb == "use":
        return f"You turn on the {things[o]}."
    if verb == "slice":
        return f"You sliced the {things[o]} with the {things[state.held]}."
    if verb == "examine":
        return receptacle_text(world, state, r) if r >= 0 else object_text(world, state, o)
    if verb == "inventory":
        held = state.held
        return "You are not carrying anything." if held == NOTHING else f"You are carrying: a {things[held]}."
    return HELP if verb == "help" else look_text(world, state)


def receptacle_text(world: World, state: State, r: int) -> str:
    """`On the shelf 1, you see a mug 2.`, or that it is closed."""
    name = world.receptacle_names[r]
    if r in world.openable and r not in state.opened:
        return f"The {name} is closed."
    seen = enumerate_text([f"a {world.object_names[o]}" for o in sorted(state.inside[r])])
    return (
        f"The {name} is open. In it, you see {seen}."
        if r in world.openable
        else f"On the {name}, you see {seen}."
    )


def object_text(world: World, state: State, o: int) -> str:
    """The text of `examine (object)`."""
    name = world.object_names[o]
    if o in world.movable:
        return (
            f"This is a normal {name}. In it, you see {enumerate_text([f'a {n}' for n in world.nested[o]])}."
        )
    clean, hot, cool = o in state.clean, o in state.hot, o in state.cool
    heat = "hot" if hot else "cool" if cool else ""
    if o in state.sliced and (clean or heat):
        words = f"{heat} and clean" if clean and heat else heat or "clean"
        return f"This is a {words} sliced {name}."
    if clean and heat:
        return f"This is a {heat} and clean {name}."
    if heat or clean:
        return f"This is a {'hot' if hot else 'clean' if clean else 'cold'} {name}."
    if o in world.toggleable:
        return f"This {name} is {'on' if o in state.toggled else 'off'}."
    if o in state.sliced:
        return f"This is a sliced {name}."
    return f"There's nothing special about {name}."


def look_text(world: World, state: State, opening: bool = False) -> str:
    """The text of `look`. As in the original, the furniture is listed in the opening only."""
    here = world.receptacles_at[state.place]
    if here:
        facing = enumerate_text([world.receptacle_names[r] for r in here])
        near = [o for o, r in sorted(state.left) if r in here and (o, state.place) in state.beside]
        seen = [f"a {world.object_names[o]}" for o in near]
        return f"You are facing the {facing}. Next to it, you see {enumerate_text(seen)}."
    furniture = [f"a {name}" for name in world.receptacle_names] if opening else []
    return (
        f"You are in the middle of a room. Looking quickly around you, you see {enumerate_text(furniture)}."
    )


def opening_text(world: World, instruction: str) -> str:
    """The first text of an episode: the room and the task."""
    return f"{WELCOME}\n\n{look_text(world, world.initial, opening=True)}\n\nYour task is to: {instruction}."


def enumerate_text(words: Sequence[str]) -> str:
    """`a, b, and c`; `nothing` for none."""
    if len(words) <= 1:
        return words[0] if words else "nothing"
    return f"{', '.join(words[:-1])}, and {words[-1]}"
