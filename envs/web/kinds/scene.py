"""What a goal looks at: the view, the words of the instruction, and what was done before."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from envs.computer.actions import Action
from envs.computer.short import spell
from envs.web.browser.view import Item, View

FIELDS = ("textbox", "textarea")
"""The roles of elements that text can be typed into."""


@dataclass(frozen=True, slots=True)
class Scene:
    """One moment of an episode.

    words: the groups of the kind's pattern in the instruction; past: the actions until now, with the element that each
    met, as it was before; seen: the views until now, without the present one.
    """

    view: View
    words: Mapping[str, str]
    past: tuple[tuple[Action, Item | None], ...] = ()
    seen: tuple[View, ...] = ()

    def say(self, template: str) -> str:
        """A template of a kind with the instruction's words in it, e.g. `{name}`."""
        for key, value in self.words.items():
            template = template.replace(f"{{{key}}}", value)
        return template

    def named(self, template: str, *roles: str) -> list[Item]:
        """The elements with this name, and one of these roles where any are given."""
        name = self.say(template)
        return [item for item in self.having(*roles) if item.name == name]

    def having(self, *roles: str) -> list[Item]:
        """The elements with one of these roles; all where none is given."""
        return [item for item in self.view.elements if not roles or item.role in roles]

    def fields(self) -> list[Item]:
        """The text fields."""
        return self.having(*FIELDS)

    def texts(self) -> list[str]:
        """The visible texts that are no elements."""
        return [item.name for item in self.view.items if item.number == 0]

    def clicked(self, item: Item) -> bool:
        """Whether the element was clicked before; a click with another button than the left one is none."""
        return any(_clicks(action) and met and met.number == item.number for action, met in self.past)

    def pointed(self, item: Item) -> bool:
        """Whether the element was pointed at before."""
        return any(action.kind == "move" and met and met.number == item.number for action, met in self.past)

    def before_click(self, *names: str) -> View | None:
        """The view before the last click on an element with one of these names; None where there was none."""
        pairs = reversed([*zip(self.past, self.seen, strict=True)])
        return next((view for (act, met), view in pairs if met and _clicks(act) and met.name in names), None)

    def blocks(self, heads: Mapping[int, str]) -> Iterator[tuple[str, list[Item]]]:
        """The items from each head to before the next, with the head's text. heads: index in the view -> text."""
        starts = sorted(heads)
        for start, stop in zip(starts, [*starts[1:], len(self.view.items)], strict=True):
            yield heads[start], list(self.view.items[start:stop])


def _clicks(action: Action) -> bool:
    return action.kind == "click" and action.button == 0


def click(item: Item) -> str:
    """The command that clicks an element."""
    return spell(Action("click", item.number))


def hover(item: Item) -> str:
    """The command that points at an element."""
    return spell(Action("move", item.number))


def typing(item: Item, text: str) -> str:
    """The command that types a text into a field, in place of what it holds."""
    return spell(Action("type", item.number, text=text))
