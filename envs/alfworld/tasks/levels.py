"""The levels of difficulty that generated games are drawn from."""

from __future__ import annotations

from dataclasses import dataclass

from envs.settings import Range


@dataclass(frozen=True)
class Level:
    """Ranges to draw the knobs from, both ends included.

    hidden: True: the target lies in closed receptacles only, False: in sight, None: anywhere.
    """

    copies: Range
    hidden: bool | None
    destinations: Range


LEVELS = {
    "easy": Level(copies=(2, 3), hidden=False, destinations=(1, 3)),
    "medium": Level(copies=(1, 2), hidden=None, destinations=(1, 2)),
    "hard": Level(copies=(1, 1), hidden=True, destinations=(1, 1)),
}
