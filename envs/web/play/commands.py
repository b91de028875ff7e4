"""The admissible commands of a view: a click on each element, and each text that may be typed, in each field."""

from __future__ import annotations

from envs.web.browser.view import View
from envs.web.kinds.kind import Kind
from envs.web.kinds.scene import FIELDS, click, hover, typing
from envs.web.play.text import Style

MOST = 400
"""Commands that are listed."""


def admissible(kind: Kind, view: View, style: Style) -> dict[str, str]:
    """The commands, as the style writes them -> the exact commands. Empty when the episode is over."""
    if view.done:
        return {}
    texts = kind.typed(view)
    exact = [
        command
        for item in view.elements
        for command in (
            click(item),
            *([hover(item)] if kind.hovers else []),
            *(typing(item, text) for text in texts if item.role in FIELDS),
        )
    ]
    written: dict[str, str] = {}
    for command in exact[:MOST]:
        verb, number, *text = command.split(" ", 2)
        written.setdefault(" ".join([verb, number, *map(style.word, text)]), command)
    return written
