"""What a page shows, as the program sees it. Values come from a page, so their types are checked and sizes bounded."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from rlanything.core.errors import EnvironmentFailure
from rlanything.core.images import Image

MOST_ITEMS = 120
"""Texts and elements that a view lists; the rest is counted in `View.more`."""
LONGEST, LONGEST_TASK = 200, 2000
"""Characters of a text or name, and of what a page asks for."""


class BrowserError(EnvironmentFailure):
    """The browser or a page failed. The episode that asked gets the status `env_error`."""


class BrowserTimeout(EnvironmentFailure, TimeoutError):
    """A page did not answer in time. The episode that asked gets the status `timeout`."""


@dataclass(frozen=True, slots=True)
class Item:
    """A text (number 0), or an element that can be acted on.

    number: of the element, from 1, the same for the whole episode. role: `button`, `textbox`, ...; name: what it is
    called; state: `checked`, `selected`, `open`, `focused` or ''; value: what a text field holds.
    """

    number: int
    role: str
    name: str
    state: str
    value: str


@dataclass(frozen=True, slots=True)
class View:
    """What a page shows after some actions.

    items: visible texts and elements in reading order; more: how many were left out; reward: the page's own, 1 is full
    success; failed: whether the last action met an element that is no longer there; met: the number of the element that
    the last action met, also where it named a place; 0 for none. picture: what it looks like; None where none was asked
    for.
    """

    instruction: str
    items: tuple[Item, ...]
    more: int
    done: bool
    reward: float
    failed: bool
    met: int = 0
    picture: Image | None = None

    @property
    def success(self) -> bool:
        """Whether the page calls it a full success."""
        return self.done and self.reward > 1 - 1e-9  # some pages add up thirds

    @property
    def elements(self) -> tuple[Item, ...]:
        """What can be acted on."""
        return tuple(item for item in self.items if item.number > 0)

    @classmethod
    def from_json(cls, data: Mapping[str, Any], picture: Image | None = None) -> View:
        """What `rla.play` returned, with a picture of the page. Raises `BrowserError` where it is something else."""
        try:
            items = tuple(
                Item(
                    int(i["number"]),
                    *(shortened(i[key], LONGEST) for key in ("role", "name", "state", "value")),
                )
                for i in data["items"][:MOST_ITEMS]
            )
            return cls(
                shortened(data["instruction"], LONGEST_TASK), items, int(data["more"]), data["done"] is True,
                float(data["reward"]), data["failed"] is True, int(data["met"]), picture,
            )  # fmt: skip
        except (KeyError, TypeError, ValueError) as error:
            raise BrowserError(
                f"the page answered with something that is no view: {type(error).__name__}: {error}"
            ) from None


def shortened(value: Any, longest: int) -> str:
    """A text of the page, cut. A page may halve a surrogate pair: `?` then stands for what is left."""
    return str(value)[:longest].encode(errors="replace").decode()
