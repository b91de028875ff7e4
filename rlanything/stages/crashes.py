"""Episodes of a panel that crashed or timed out. They say nothing about a policy: they are counted and left out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from rlanything.core.errors import MachineError
from rlanything.core.printable import counted, one_line
from rlanything.core.types import Trajectory
from rlanything.runs import launch


class Kept(NamedTuple):
    """The episodes that count, and how many others there were."""

    episodes: list[Trajectory]
    crashed: int


def without_crashed(what: str, played: Sequence[Trajectory]) -> Kept:
    """The episodes that count. How many do not is printed, as by `say`.

    what: which episodes they are, for the messages. Raises `MachineError` where there are some, and none counts.
    """
    kept = [trajectory for trajectory in played if trajectory.counts]
    if played and not kept:
        raise all_crashed(f"{what}: {counted(len(played), 'episode')}", played[0].error)
    return Kept(kept, say(what, played))


def say(what: str, played: Sequence[Trajectory]) -> int:
    """Print how many episodes crashed or timed out, with the first error, where any did. Returns how many."""
    lost = [trajectory for trajectory in played if not trajectory.counts]
    if lost and launch.first_process():
        total = counted(len(played), "episode")
        text = f"{what}: {len(lost)} of {total} crashed or timed out and are left out; the first error: "
        print(text + one_line(lost[0].error))
    return len(lost)


def all_crashed(what: str, error: str = "") -> MachineError:
    """What to raise where nothing could be measured. error: of the first episode."""
    first = f"; the first error: {one_line(error)}" if error else "; the lines above have the first errors"
    return MachineError(f"{what}: all of them crashed or timed out, so nothing was measured{first}")
