"""Experts and rewrites as texts of a model, without a running desktop: what stand-ins are taught in a rehearsal.

Where an expert names an item, its place is not known without a desktop, so the middle of the screen stands for it.
"""

from __future__ import annotations

from collections.abc import Sequence

from envs.computer import reply
from envs.computer.actions import Refusal
from envs.computer.keyboard import DESKTOP
from envs.computer.said import said
from envs.computer.written import answer
from envs.desktop import rewording
from envs.desktop.small.expert import NAMED
from envs.desktop.small.templates import Template
from rlanything.core.types import Direction, InvalidProposal, Observation


def demonstration(
    instruction: str, commands: Sequence[str], screen: tuple[int, int]
) -> list[tuple[Observation, str]]:
    """(observation, reply) pairs of an expert whose commands are given. Observations have neither tree nor picture.

    screen: its width and height in pixels.
    """
    replies = [answer(command, DESKTOP) for command in commands]
    results = [_result(made, screen) for made in replies[:-1]]
    return [(Observation(seen), made) for seen, made in zip([instruction, *results], replies, strict=True)]


def rewrite(template: Template, row: int, key: str, direction: Direction) -> str:
    """An adapter's reply. Easier: the same evaluator with a hint; harder: another evaluator, without one."""
    known = template.instructions(row)
    if direction is Direction.EASIER:
        first = NAMED.sub("the item", template.expert(row, key)[0])
        return rewording.reply(key, f"{known[key]} Begin with this: {first}.")
    others = [name for name in known if name != key]
    if not others:
        raise InvalidProposal("the template has one evaluator only")
    return rewording.reply(others[0], known[others[0]])


def _result(made: str, screen: tuple[int, int]) -> str:
    """What the environment answers to a reply, on a desktop that shows no tree."""
    action = reply.read(made, screen)
    assert not isinstance(action, Refusal)
    return said(action, None)
