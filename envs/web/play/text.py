"""A page as text, in two styles.

`plain` is for language models: the whole page at every step, names in quotes. `compact` is for the small embedded
models: small letters, no quotes, signs apart from words, and after the first step only what is new or different.
`unseen` is for agents that see a picture and read no list: what is asked for, and what was done.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

from envs.computer.actions import Action
from envs.computer.said import said
from envs.web.browser.view import Item, View

_SIGNS = re.compile(r"[^\w\s]+")
ENDED = "The page has ended the task."
SAME = "Nothing changed."
SHORT = 40
"""Characters of a text in the style `compact`."""
GONE = "That element is not there any more."


class Style(NamedTuple):
    """How a page is written. word: a text in this style; first, next: whole observations; said: what was done.

    The judge and the critic read what was done.
    """

    word: Callable[[str], str]
    first: Callable[[str, View], str]
    next: Callable[[str, View, View], str]
    said: Callable[[Action, Item | None], str]


def fold(text: str) -> str:
    """A text as `compact` writes it."""
    return " ".join(_SIGNS.sub(lambda found: f" {found[0]} ", text.replace('"', " ")).lower().split())


def _plain_line(item: Item) -> str:
    if not item.number:
        return item.name
    value = f' value "{item.value}"' if item.value else ""
    return f'[{item.number}] {item.role} "{item.name}"{value}{f" {item.state}" if item.state else ""}'


def _compact_line(item: Item) -> str:
    """A line in few words: long texts are cut, and the focus, which every action moves, is left out."""
    if not item.number:
        return fold(item.name[:SHORT])
    state = "" if item.state == "focused" else item.state
    return " ".join(filter(None, (item.role, fold(item.name), str(item.number), fold(item.value), state)))


def _page(view: View, line: Callable[[Item], str]) -> list[str]:
    left_out = [f"({view.more} more not shown)"] if view.more else []
    return [*map(line, view.items), *left_out]


def _plain_first(instruction: str, view: View) -> str:
    return "\n".join([instruction, *_page(view, _plain_line)])


def _plain_next(done: str, before: View, after: View) -> str:
    if after.done:
        return f"{done} {ENDED}"
    same = after.items == before.items and after.picture == before.picture
    note = GONE if after.failed else SAME if same else ""
    return "\n".join([f"{done} {note}".strip(), *_page(after, _plain_line)])


def _compact_first(instruction: str, view: View) -> str:
    return "\n".join([fold(instruction), *_page(view, _compact_line)])


def _compact_next(done: str, before: View, after: View) -> str:
    """What was done, then the lines that the page did not have before."""
    if after.done:
        return f"{fold(done)}\nended"
    had = {_compact_line(item) for item in before.items}
    lines = [line for line in map(_compact_line, after.items) if line not in had]
    return "\n".join([fold(done), *(lines or [fold(GONE if after.failed else SAME)])])


def _said(action: Action, element: Item | None) -> str:
    return said(action, element, "the page")


STYLES = {
    "plain": Style(str, _plain_first, _plain_next, _said),
    "compact": Style(fold, _compact_first, _compact_next, _said),
}
"""By `env.text`."""


def unseen(style: Style) -> Style:
    """A style without the items of the page: nothing in it names what only a list would show."""

    def following(done: str, before: View, after: View) -> str:
        note = (
            ENDED if after.done else GONE if after.failed else SAME if after.picture == before.picture else ""
        )
        return style.word(f"{done} {note}".strip())

    return Style(
        style.word,
        lambda instruction, _view: style.word(instruction),
        following,
        lambda action, _element: said(action, None),
    )
