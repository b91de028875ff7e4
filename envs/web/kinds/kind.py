"""A kind of task: a page, what it asks for, and the way to a success. docs/gui.md adds one, in ten lines."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from envs.web.browser.view import View
from envs.web.kinds.goals import Goal
from envs.web.kinds.scene import Scene

Words = Mapping[str, str]
QUOTED = re.compile(r'"([^"]*)"')
BARE = re.compile(r"@\w+|\d{1,2}/\d{1,2}/\d{4}|\d{1,2}:\d\d [AP]M|-?\d+\b(?!st|nd|rd|th)|\b[A-Z][\w-]+")
MOST_TEXTS = 100
"""Texts that are offered for a field."""


def of_instruction(view: View) -> list[str]:
    """The texts that the instruction names: what it quotes; else its names, numbers and dates."""
    return QUOTED.findall(view.instruction) or BARE.findall(view.instruction)


def nothing(_view: View) -> list[str]:
    """No text: nothing is to be typed."""
    return []


def of_page(view: View) -> list[str]:
    """The texts that the page shows, which can be copied."""
    shown = [item.value or item.name for item in view.items if item.number == 0 or item.value]
    return [text for text in shown if text]


def of_words(view: View) -> list[str]:
    """The single words of the page's texts, without the signs around them."""
    return [word for text in of_page(view) for word in re.findall(r"[A-Za-z]+", text)]


def cased(view: View) -> list[str]:
    """What the instruction names, in small and in capital letters."""
    return [form for text in of_instruction(view) for form in (text, text.lower(), text.upper())]


def numbers(low: int, high: int) -> Callable[[View], list[str]]:
    """All numbers of a range."""
    return lambda _view: [str(number) for number in range(low, high + 1)]


def same(words: Words) -> Words:
    """No other words than those of the pattern."""
    return words


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of task.

    name: the page's file without `.html`. asks: the pattern of its instruction, whose groups are the words of the
    goals. goals: in the order in which they must be reached. texts: where the texts come from that an agent may type.
    derive: further words, from those of the pattern. hovers: whether an agent may point at elements too, as menus need.
    clear: whether a page of this kind asks for one thing only; a seed whose page does not is left out. strict: the page
    overlooks a part of what it asks for, so its success counts only where nothing but the last goal was left.
    """

    name: str
    asks: str
    goals: tuple[Goal, ...]
    texts: Callable[[View], list[str]] = of_instruction
    derive: Callable[[Words], Words] = same
    hovers: bool = False
    clear: Callable[[Scene], bool] | None = None
    strict: bool = False

    def words(self, instruction: str) -> Words:
        """The words of an instruction. Raises `ValueError` for one that is not of this kind."""
        found = re.fullmatch(self.asks, instruction)
        if found is None:
            raise ValueError(
                f"{self.name}: the page asks for something else than its description: {instruction!r}"
            )
        return self.derive({key: value for key, value in found.groupdict().items() if value is not None})

    def asks_for(self, instruction: str) -> bool:
        """Whether an instruction is of this kind. Some pages also ask for things that their text does not say."""
        return re.fullmatch(self.asks, instruction) is not None

    def good(self, scene: Scene) -> dict[str, str]:
        """The commands that are part of a shortest remaining solution, each with the reason; empty at a dead end."""
        for goal in self.goals:
            if wanted := list(goal.wants(scene)):
                return dict.fromkeys(wanted, goal.reason)
        return {}

    def unfinished(self, scene: Scene) -> bool:
        """Whether more than the last goal is left."""
        return any(list(goal.wants(scene)) for goal in self.goals[:-1])

    def typed(self, view: View) -> list[str]:
        """The texts that an agent may type here, each once."""
        return list(dict.fromkeys(text for text in self.texts(view) if text))[:MOST_TEXTS]


def kind(name: str, asks: str, *goals: Goal, **more: Any) -> Kind:
    """A kind of task, as the tables write it. more: the other fields of `Kind`."""
    return Kind(name, asks, goals, **more)
