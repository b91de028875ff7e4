"""Experts and rewrites as texts of a model, without a running desktop: what stand-ins are taught in a rehearsal.

Replies have the form of the paper's prompts: a sentence and a call of the tool `computer_use`. Where an expert names an
item, its place is not known without a desktop, so the middle of the screen stands for it.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from envs.computer import computer_use, reply
from envs.computer.actions import Refusal
from envs.computer.keyboard import DESKTOP
from envs.computer.short import parse
from envs.desktop import rewording
from envs.desktop.play import text
from envs.desktop.small.expert import NAMED
from envs.desktop.small.templates import Template
from rlanything.core.types import Direction, InvalidProposal, Observation

MIDDLE = [computer_use.GRID // 2] * 2
CLICKS = {"click": "left_click", "double": "double_click", "right": "right_click", "hover": "mouse_move"}


def demonstration(
    instruction: str, commands: Sequence[str], screen: tuple[int, int]
) -> list[tuple[Observation, str]]:
    """(observation, reply) pairs of an expert whose commands are given. Observations have neither tree nor picture.

    screen: its width and height in pixels.
    """
    replies = [answer(command) for command in commands]
    results = [_result(said, screen) for said in replies[:-1]]
    return [(Observation(seen), said) for seen, said in zip([instruction, *results], replies, strict=True)]


def answer(command: str) -> str:
    """A model's reply that does what a command of an expert says."""
    call = {"name": computer_use.NAME, "arguments": _arguments(command)}
    return f"Action: {command}.\n<tool_call>\n{json.dumps(call)}\n</tool_call>"


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


def _result(said: str, screen: tuple[int, int]) -> str:
    """What the environment answers to a reply, on a desktop that shows no tree."""
    action = reply.read(said, screen)
    assert not isinstance(action, Refusal)
    return text.said(action, None)


def _arguments(command: str) -> dict[str, Any]:
    verb = command.partition(" ")[0]
    if verb in CLICKS:
        return {"action": CLICKS[verb], "coordinate": MIDDLE}
    action = parse(command, DESKTOP)
    if isinstance(action, Refusal):
        raise ValueError(f"{command}: {action.reason}")
    match action.kind:
        case "type":
            return {"action": "type", "text": action.text}
        case "press" | "chord":
            return {"action": "key", "keys": list(action.keys)}
        case "wait":
            return {"action": "wait", "time": 1}
        case _:
            return {"action": "terminate", "status": "success" if action.kind == "done" else "failure"}
