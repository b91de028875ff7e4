"""Labels of steps: a step is good when it is part of a shortest remaining solution, as far as that can be known.

Where something must be looked for, every place that was not opened yet is as good as the others.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from envs.computer.actions import Refusal
from envs.computer.short import spell
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
"""Bad: changes nothing, or undoes something."""


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
    before = episode.view
    episode.step(text)
    if (reason := good.get(spell(action))) is not None and action.number:
        return Label(True, GOAL_REACHED if episode.view.success else reason)
    if episode.view is before:
        return Label(False, NOT_POSSIBLE)
    if action.kind == "type":
        return Label(False, WRONG_TEXT)
    return Label(False, TOO_EARLY if episode.done else NO_PROGRESS)
