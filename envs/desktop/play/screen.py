"""An accessibility tree as items. It is read as a stream, comes from another machine, and is bounded everywhere.

The form is OSWorld's: XML whose tags are roles, with states, places and sizes as attributes of named spaces.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from xml.parsers import expat

from envs.desktop.bridge.answers import WorldError

MOST_ITEMS = 200
"""Items that a view lists; the rest is counted."""
MOST_NODES = 20_000
"""Nodes that are looked at."""
LONGEST = 200
"""Characters of a role, of a name, and of a value."""
CHUNK = 2**16
ACTS = frozenset(
    {
        "push-button", "toggle-button", "menu", "menu-item", "check-menu-item", "radio-menu-item", "entry", "text",
        "password-text", "check-box", "radio-button", "combo-box", "list-item", "table-cell", "icon", "link",
        "page-tab",
        "spin-button", "slider", "tree-item", "terminal", "document-web", "document-text", "document-spreadsheet",
        "column-header", "table-column-header", "canvas",
    }
)  # fmt: skip
"""Roles that are listed without a name too: something can be done with them."""
LEFT_OUT = frozenset(
    {
        "panel",
        "filler",
        "scroll-bar",
        "separator",
        "scroll-pane",
        "split-pane",
        "viewport",
        "layered-pane",
        "root-pane",
    }
)
STATES = ("focused", "checked", "selected", "pressed", "expanded")
_COUNT = re.compile("[0-9]{1,9}")
_PAIR = re.compile(r"\(?\s*(-?\d{1,6})\s*,\s*(-?\d{1,6})\s*\)?")


@dataclass(frozen=True, slots=True)
class Item:
    """Something that a desktop shows. number: from 1, of this view. x, y: its middle, pixels."""

    number: int
    role: str
    name: str
    value: str
    state: str
    x: int
    y: int


@dataclass(frozen=True, slots=True)
class View:
    """The items that are in sight, in reading order; more: how many were left out."""

    items: tuple[Item, ...] = ()
    more: int = 0

    def element(self, number: int) -> Item | None:
        """An item by its number."""
        return self.items[number - 1] if 1 <= number <= len(self.items) else None


def read(tree: str, screen: tuple[int, int]) -> View:
    """The view of a tree; an empty one where there is no tree. Raises `WorldError` for a text that is no such XML."""
    if not tree:
        return View()
    found = _Reader(screen)
    try:
        for start in range(0, len(tree), CHUNK):
            found.parser.Parse(tree[start : start + CHUNK].encode("utf-8", "replace"), False)
            if found.nodes > MOST_NODES:  # what follows is not even read
                return found.view(more=1)
        found.parser.Parse(b"", True)
    except expat.ExpatError as error:
        raise WorldError(f"the accessibility tree is no XML: {error}") from None
    return found.view()


class _Node:
    """An element that is open: its role, attributes and text."""

    def __init__(self, role: str, given: dict[str, str]) -> None:
        self.role, self.given, self.text = role, given, ""


class _Reader:
    """Collects the items of a tree."""

    def __init__(self, screen: tuple[int, int]) -> None:
        self.nodes, self._left_out = 0, 0
        self._screen = screen
        self._open: list[_Node] = []
        self._found: list[_Node | None] = []
        # It is a text already: the encoding that it declares, which may be none that Python knows, means nothing.
        self.parser = expat.ParserCreate("utf-8", " ")
        self.parser.buffer_text = True
        self.parser.StartElementHandler = self._start
        self.parser.EndElementHandler = self._end
        self.parser.CharacterDataHandler = self._text
        self.parser.StartDoctypeDeclHandler = self._refuse

    def view(self, more: int = 0) -> View:
        """The items that were found. more: how many are known to be missing."""
        items = list[Item]()
        more += self._left_out
        for node in self._found:
            item = self._item(node, len(items) + 1) if node else None
            if item and len(items) < MOST_ITEMS:
                items.append(item)
            elif item:
                more += 1
        return View(tuple(items), more)

    def _refuse(self, *_: object) -> None:
        raise WorldError("the accessibility tree declares a document type, which no desktop does")

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        self.nodes += 1
        if self.nodes > MOST_NODES:
            return
        # `<uri>/state focused` -> `state focused`: worlds of other systems have other addresses before the last word.
        given = {key.rpartition("/")[2]: value for key, value in attributes.items()}
        node = _Node(name.rpartition(" ")[2], given)
        if not self._found and _COUNT.fullmatch(
            given.get("left-out", "")
        ):  # by the world, which says it at the root
            self._left_out = int(given["left-out"])
        self._open.append(node)
        self._found.append(node)  # before its children: reading order

    def _text(self, data: str) -> None:
        if self._open and len(self._open[-1].text) <= LONGEST:
            self._open[-1].text += data[: LONGEST + 1]

    def _end(self, _name: str) -> None:
        if self._open:
            self._open.pop()

    def _item(self, node: _Node, number: int) -> Item | None:
        given, name = node.given, " ".join(node.given.get("name", "").split())
        value = node.text.strip("\n") or given.get("value value", "")
        shown = given.get("state showing") == "true" and given.get("state visible", "true") == "true"
        known = node.role in ACTS or ((name or value) and node.role not in LEFT_OUT)
        place = _middle(given.get("component screencoord", ""), given.get("component size", ""), self._screen)
        if not shown or not known or place is None or node.role in ("application", "desktop-frame"):
            return None
        state = " ".join(word for word in STATES if given.get(f"state {word}") == "true")
        return Item(number, node.role[:LONGEST], name[:LONGEST], value[:LONGEST], state, *place)


def _middle(corner: str, size: str, screen: tuple[int, int]) -> tuple[int, int] | None:
    """The middle of the part that is on the screen; None where nothing of it is."""
    at, by = _PAIR.fullmatch(corner), _PAIR.fullmatch(size)
    if at is None or by is None:
        return None
    middle = []
    for first, length, most in zip(map(int, at.groups()), map(int, by.groups()), screen, strict=True):
        low, high = max(first, 0), min(first + length, most)
        if low >= high:
            return None
        middle.append((low + high - 1) // 2)
    return middle[0], middle[1]
