"""Labels of steps: a step is good when it is part of a shortest remaining solution, as far as that can be known.

Where something must be looked for, every place that was not opened yet is as good as the others.

What was reached before is no progress: the same command to the same effect is good once in an episode. Otherwise a
policy could go back and forth for ever and be praised every second time.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import NamedTuple

from envs.computer.actions import Action, Refusal
from envs.computer.short import spell
from envs.web.browser.view import Item, View
from envs.web.play.episode import Episode

GOAL_REACHED = "goal reached"
"""Good: the last step."""
NOT_POSSIBLE = "not possible"
"""Bad: no action, or an element that is not there."""
WRONG_TEXT = "wrong text"
"""Bad: types something that is not asked for here."""
TOO_EARLY = "too early"
"""Bad: ends the task before everything is done."""
NO_PROGRESS = "no progress"
"""Bad: changes nothing, undoes something, or does again what was undone."""


class Label(NamedTuple):
    """Whether a step is good, and why in a few words that a small model can learn to write."""

    good: bool
    reason: str


def labels(episode: Episode, actions: Iterable[str]) -> list[Label]:
    """The labels of the actions of an episode, which must be at its start. It is played to the end of them."""
    return [label(episode, action) for action in actions]


def label(episode: Episode, text: str) -> Label:
    """Label an action and perform it."""
    if episode.done:
        return Label(False, NOT_POSSIBLE)
    action = episode.read(text)
    good = episode.setting.kind.good(episode.scene)
    if isinstance(action, Refusal):
        episode.step(text)
        return Label(False, NOT_POSSIBLE)
    before, commands = episode.view, _performed(episode)
    episode.step(text)
    if episode.view is before:
        return Label(False, NOT_POSSIBLE)
    done = _performed(episode)[-1]
    if episode.view.success:
        return Label(True, GOAL_REACHED)
    if (reason := good.get(done)) is not None and _holds(episode):
        again = done in commands and _shown(episode.view) in map(_shown, episode.scene.seen)
        return Label(False, NO_PROGRESS) if again else Label(True, reason)
    if action.kind == "type":
        return Label(False, WRONG_TEXT)
    return Label(False, TOO_EARLY if episode.done else NO_PROGRESS)


def _performed(episode: Episode) -> list[str]:
    """The actions until now as commands on the elements that they met, also where they named a place."""
    return [_command(action, met) for action, met in episode.scene.past]


def _holds(episode: Episode) -> bool:
    """Whether a field holds what was typed. A text that names no field is put behind what the focused one holds."""
    action, met = episode.scene.past[-1]
    if action.kind != "type" or action.number or met is None:
        return True
    return any(item.number == met.number and item.value == action.text for item in episode.view.items)


def _command(action: Action, met: Item | None) -> str:
    return spell(replace(action, number=met.number, x=None, y=None)) if met else ""


def _shown(view: View) -> tuple[Item, ...]:
    """What the page shows, without the focus, which every action moves."""
    return tuple(replace(item, state="") if item.state == "focused" else item for item in view.items)
