"""The accessibility tree of all applications, by AT-SPI, as OSWorld's XML. Part of the program in the box."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from typing import Any
from xml.sax.saxutils import escape, quoteattr

import gi

gi.require_version("Atspi", "2.0")
from gi.repository import Atspi  # noqa: E402

MOST_NODES, MOST_CHILDREN, DEEPEST = 3000, 200, 40
"""Of a tree, of a node, and levels. What is not looked at for that is counted."""
LONGEST = 2000
"""Characters of a text."""
PATIENCE = 800
"""Milliseconds that an application may take for one answer: one that hangs is shown without its inside."""
STATES = ("showing", "visible", "focused", "checked", "selected", "pressed", "expanded", "enabled")
_NO_XML = re.compile("[^\\t\\n\\r\\x20-\\ud7ff\\ue000-\\ufffd\\U00010000-\\U0010ffff]|\\ufffc")
SPACE = "https://accessibility.ubuntu.example.org/ns"


def connect(limit: float) -> None:
    """Wait for the registry of applications."""
    until = time.monotonic() + limit
    while True:
        try:
            Atspi.init()
            Atspi.set_timeout(PATIENCE, 2000)
            Atspi.get_desktop(0).get_child_count()
            return
        except Exception:  # GLib.Error has no class that can be named before it is imported
            if time.monotonic() > until:
                raise
            time.sleep(0.05)


def has_window() -> bool:
    """Whether an application shows a window."""
    for app in _children(Atspi.get_desktop(0)):
        for window in _children(app):
            if _has(window, "showing") and window.get_role_name() in ("frame", "dialog", "window"):
                return True
    return False


def has_focus() -> bool:
    """Whether something in a window has the focus."""
    return any(focused for _role, _name, _text, focused in items())


def xml() -> str:
    """The tree as text. Its attribute `left-out` counts the nodes that were not looked at, but not what is in them."""
    walk = _Walk()
    parts = [part for app in walk.children(Atspi.get_desktop(0)) for part in walk.node(app, 0)]
    given = f' left-out="{walk.left_out}"' if walk.left_out else ""
    spaces = f'xmlns:st="{SPACE}/state" xmlns:cp="{SPACE}/component"'
    return "".join([f'<desktop-frame {spaces} name="main"{given}>', *parts, "</desktop-frame>"])


def items() -> Iterator[tuple[str, str, str, bool]]:
    """(role, name, text, focused) of everything that is shown, for checks of an application's state."""
    waiting = [*_children(Atspi.get_desktop(0))]
    while waiting:
        node = waiting.pop()
        try:
            if _has(node, "showing"):
                yield node.get_role_name(), node.get_name() or "", _text(node), _has(node, "focused")
        except Exception:
            continue
        waiting.extend(_children(node))


def buttons() -> list[Any]:
    """The buttons in sight that can be down."""
    found, waiting = [], [*_children(Atspi.get_desktop(0))]
    while waiting:
        node = waiting.pop()
        try:
            if node.get_role_name() == "toggle button" and _has(node, "showing"):
                found.append(node)
        except Exception:
            continue
        waiting.extend(_children(node))
    return found


def down(among: list[Any]) -> set[int]:
    """The places of those of these buttons that are down."""
    return {place for place, node in enumerate(among) if _is_down(node)}


def _is_down(node: Any) -> bool:
    try:
        node.clear_cache()
        return _has(node, "checked")
    except Exception:  # it is gone
        return False


class _Walk:
    """Looks at nodes as long as there are not too many, and counts the others."""

    def __init__(self) -> None:
        self._left, self.left_out = MOST_NODES, 0

    def node(self, node: Any, depth: int) -> Iterator[str]:
        """The XML of a node. An application that does not answer is left out from there on."""
        if self._left <= 0 or depth > DEEPEST:
            self.left_out += 1
            return
        self._left -= 1
        try:
            opened = _opened(node)
        except Exception:
            return
        if opened is None:
            return
        tag, start = opened
        yield start
        for child in self.children(node):
            yield from self.node(child, depth + 1)
        yield f"</{tag}>"

    def children(self, node: Any) -> list[Any]:
        """The children that are looked at."""
        try:
            self.left_out += max(node.get_child_count() - MOST_CHILDREN, 0)
        except Exception:
            return []
        return _children(node)


def _opened(node: Any) -> tuple[str, str] | None:
    """(tag, its beginning with the text of the node); None for what is not shown. Raises where nobody answers."""
    role = (node.get_role_name() or "unknown").strip().replace(" ", "-")
    if role != "application" and not _has(node, "showing"):
        return None
    given = [f"name={quoteattr(_clean(node.get_name() or ''))}"]
    given += [f'st:{state}="true"' for state in STATES if _has(node, state)]
    component = node.get_component_iface()
    if component is not None:
        box = component.get_extents(Atspi.CoordType.SCREEN)
        given += [f'cp:screencoord="({box.x}, {box.y})"', f'cp:size="({box.width}, {box.height})"']
    tag = role if role.replace("-", "").isalnum() and role[0].isalpha() else "unknown"
    return tag, f"<{tag} {' '.join(given)}>{escape(_clean(_text(node)))}"


def _children(node: Any) -> list[Any]:
    try:
        found = [node.get_child_at_index(i) for i in range(min(node.get_child_count(), MOST_CHILDREN))]
    except Exception:
        return []
    return [child for child in found if child is not None]


def _has(node: Any, state: str) -> bool:
    return bool(node.get_state_set().contains(getattr(Atspi.StateType, state.upper())))


def _text(node: Any) -> str:
    interface = node.get_text_iface()
    if interface is None:
        return ""
    return str(Atspi.Text.get_text(interface, 0, min(LONGEST, Atspi.Text.get_character_count(interface))))


def _clean(text: str) -> str:
    """A text without what is no character of XML 1.0, and without the sign that stands for an embedded object."""
    return _NO_XML.sub("", text)
