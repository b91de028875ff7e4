"""What an agent is shown of a screen, and how large the screen is: `env.observe` and `env.screen` of every GUI."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from envs.settings import one_of, whole


class Observes(NamedTuple):
    """tree: the screen as a list of items in text. pictures: a screenshot with each observation."""

    tree: bool
    pictures: bool

    @property
    def only_pictures(self) -> bool:
        """Whether the text does not say what there is to act on."""
        return self.pictures and not self.tree


OBSERVES = {
    "screenshot": Observes(tree=False, pictures=True),
    "tree": Observes(tree=True, pictures=False),
    "both": Observes(tree=True, pictures=True),
}
"""By `env.observe`."""


def observes(value: str) -> Observes:
    """What `env.observe` stands for. Raises `ValueError`."""
    return OBSERVES[one_of("observe", value, OBSERVES)]


def screen(sides: Sequence[int], smallest: tuple[int, int], largest: int) -> tuple[int, int]:
    """Width and height in pixels. smallest: of each; largest: of both. Raises `ValueError`."""
    if isinstance(sides, str) or not isinstance(sides, Sequence) or len(sides) != 2:
        raise ValueError(f"screen: {sides!r} is not [width, height] in pixels")
    width, height = (
        whole("screen", side, least, largest) for side, least in zip(sides, smallest, strict=True)
    )
    return width, height
