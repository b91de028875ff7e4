"""The expert as replies of a model that sees a page: calls of the tool `computer_use` at the places of elements."""

from __future__ import annotations

from envs.computer import computer_use, short
from envs.computer.actions import Action
from envs.computer.keyboard import PAGE
from envs.computer.written import MIDDLE, answer
from envs.web.browser.pool import Pool
from envs.web.play.episode import Episode
from envs.web.teacher.expert import MOST_STEPS
from rlanything.core.types import Observation


def demonstration(pool: Pool, episode: Episode) -> list[tuple[Observation, str]]:
    """(observation, reply) pairs of the expert, which plays `episode`; observations without pictures.

    The first good command is taken each time. A text takes two replies: a click on its field, and the typing. What has
    no place, such as an option of a closed list, is clicked in the middle of the page, and there it ends.
    """
    shown, seen = list[tuple[Observation, str]](), episode.first
    while not episode.done and len(shown) < MOST_STEPS:
        command = min(episode.setting.kind.good(episode.scene), default="")
        action = short.parse(command)
        if not isinstance(action, Action):
            break
        place = pool.places(episode.setting.kind.name, episode.setting.seed, episode.made).get(action.number)
        for said in _said(action, command):
            reply = answer(said, PAGE, MIDDLE if place is None else _on_grid(place, pool.settings.screen))
            shown.append((Observation(seen), reply))
            seen = episode.step(reply)
        if place is None:
            break
    return shown


def _said(action: Action, command: str) -> tuple[str, ...]:
    """The command as what a mouse and a keyboard do, one after the other."""
    return (f"click {action.number}", f"type 0 {action.text}") if action.kind == "type" else (command,)


def _on_grid(place: tuple[int, int], screen: tuple[int, int]) -> tuple[int, int]:
    """A place in pixels as the tool names it: the smallest coordinates that are read as no pixel before it.

    Of a screen with more pixels than the tool has numbers, some pixels have none, and one soon after is meant.
    """
    x, y = (-(-at * computer_use.GRID // side) for at, side in zip(place, screen, strict=True))
    return x, y
