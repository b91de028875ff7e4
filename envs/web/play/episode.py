"""One episode: the actions until now, and what the page shows after them. The page itself is shared (`browser`)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from envs.computer import reply, short
from envs.computer.actions import Action, Refusal
from envs.computer.keyboard import PAGE
from envs.web.browser.pool import Pool
from envs.web.browser.view import Item, View
from envs.web.kinds.kind import Kind
from envs.web.kinds.scene import FIELDS, Scene
from envs.web.play.commands import admissible
from envs.web.play.text import Style


@dataclass(frozen=True, slots=True)
class Setting:
    """What a task says of its episode: the kind, the seed of the page's generator, and the hint ('' for none)."""

    kind: Kind
    seed: str
    hint: str = ""


class Episode:
    """An episode that is played. tries: starts of a browser before its failure is raised.

    pictures: whether its views have one.

    Raises `BrowserError` and `BrowserTimeout`, from its first moment on.
    """

    def __init__(
        self, pool: Pool, setting: Setting, style: Style, tries: int = 1, pictures: bool = False
    ) -> None:
        self._pool, self.setting, self.style, self._tries = pool, setting, style, tries
        self.pictures = pictures
        self._past: list[tuple[Action, Item | None]] = []
        self._seen: list[View] = []
        self.view = self._look()
        self.instruction = self.view.instruction
        self.given_up = False
        self.commands = self._commands()

    @property
    def scene(self) -> Scene:
        """What the goals of the kind look at."""
        words = self.setting.kind.words(self.instruction)
        return Scene(self.view, words, tuple(self._past), tuple(self._seen))

    @property
    def done(self) -> bool:
        """Whether the page has ended the task, or the agent has."""
        return self.view.done or self.given_up

    @property
    def first(self) -> str:
        """The first observation."""
        hint = f" Hint: {self.setting.hint}" if self.setting.hint else ""
        return self.style.first(self.instruction + hint, self.view)

    def read(self, text: str) -> Action | Refusal:
        """The action that a text stands for: an admissible command in this style, or any reply that holds an action."""
        known = self.commands.get(text.strip())
        return reply.read(text, self._pool.settings.screen, PAGE) if known is None else short.parse(known)

    def leave(self) -> None:
        """Go on no further: the page may play another episode."""
        self._pool.leave(self.setting.kind.name, self.setting.seed, self.made)

    def step(self, text: str) -> str:
        """Perform what a text stands for; returns the observation. What cannot be done is answered in text."""
        if self.done:
            return "The episode is over."
        action = self._fitting(self.read(text))
        if isinstance(action, Refusal):
            return self.style.next(f"You did nothing: {action.reason}", self.view, self.view)
        if action.kind in ("done", "fail"):
            self.given_up = True
            self.leave()
            return "You ended the task."
        return self._perform(action)

    def next_actions(self, text: str) -> list[dict[str, Any]] | None:
        """All actions of the episode with what a text stands for; None where the page would not be asked for it."""
        action = self._fitting(self.read(text))
        if self.done or isinstance(action, Refusal) or action.kind in ("done", "fail"):
            return None
        return [*self.made, action.to_json()]

    @property
    def made(self) -> list[dict[str, Any]]:
        """The actions until now, as the page gets them."""
        return [action.to_json() for action, _ in self._past]

    def _fitting(self, action: Action | Refusal) -> Action | Refusal:
        """The action, or why it cannot be done on what the page shows now."""
        if isinstance(action, Refusal):
            return action
        if not action.number:
            width, height = self._pool.settings.screen
            if (action.x or 0) < width and (action.y or 0) < height:
                return action
            return Refusal(f"that place is outside the page, which is {width} by {height} pixels.")
        element = self._element(action.number)
        if element is None:
            return Refusal("there is no such element.")
        if action.kind == "type" and element.role not in FIELDS:
            return Refusal("that is no text field.")
        return action

    def _perform(self, action: Action) -> str:
        before, kind = self.view, self.setting.kind
        early = kind.strict and kind.unfinished(self.scene)
        self._past.append((action, None))
        try:
            self.view = self._look()
        except Exception:
            self._past.pop()
            raise
        if early and self.view.success:
            self.view = replace(self.view, reward=0.0)
        met = action.number or self.view.met
        element = next((item for item in before.elements if item.number == met), None)
        self._past[-1] = action, element
        self._seen.append(before)
        self.commands = self._commands()
        return self.style.next(self.style.said(action, element), before, self.view)

    def _look(self) -> View:
        kind, seed = self.setting.kind.name, self.setting.seed
        return self._pool.play(kind, seed, self.made, self._tries, self.pictures)

    def _commands(self) -> dict[str, str]:
        return admissible(self.setting.kind, self.view, self.style)

    def _element(self, number: int) -> Item | None:
        return next((item for item in self.view.elements if item.number == number), None)
