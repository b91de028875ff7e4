"""Which action a model's reply holds.

A tool call in its tags, a tool call alone, a short text, what stands in the last fenced block, or the one JSON object
in a reply of words. A reply that could mean two things is refused.
"""

from __future__ import annotations

import json
import re

from envs.computer import computer_use, short, tool_calls
from envs.computer.actions import Action, Refusal
from envs.computer.computer_use import Computer
from envs.computer.keyboard import DESKTOP, Keyboard

LONGEST = 20_000
"""Characters of a reply that are read, from its end."""
_FENCED = re.compile(r"```[\w-]*[ \t]*\n?(.*?)```", re.DOTALL)
_CALL = re.compile(r"<tool_call>(.*?)</tool_call>", re.DOTALL)


def read(text: str, screen: tuple[int, int], keyboard: Keyboard = DESKTOP) -> Action | Refusal:
    """The action of a reply, without its thought, for a screen of this size in pixels. The text is untrusted."""
    text = text[-LONGEST:].strip()
    calls = _CALL.findall(text)
    if len(calls) > 1:
        return Refusal("one reply holds one tool call.")
    computer = Computer(screen, keyboard)
    found = _alone(calls[0].strip() if calls else text, computer)
    if calls or isinstance(found, Action) or text.startswith("{"):
        return found
    for within in (*_FENCED.findall(text)[-1:], _only_object(text)):
        inside = _alone(within.strip(), computer)
        if within and isinstance(inside, Action):
            return inside
        found = inside if within.strip().startswith("{") else found  # its reason says more
    return found


def _alone(text: str, computer: Computer) -> Action | Refusal:
    """The action of a text that holds nothing else."""
    if not text.startswith("{"):
        return short.parse(text, computer.keyboard)
    if len(text) > tool_calls.LONGEST:
        return Refusal(f"a tool call has at most {tool_calls.LONGEST} characters.")
    try:
        call = json.loads(text)
    except (ValueError, RecursionError):
        return Refusal("that is no JSON object.")
    if isinstance(call, dict) and call.get("name") == computer_use.NAME:
        return computer_use.read(call, computer)
    return tool_calls.read(call, computer.keyboard)


def _only_object(text: str) -> str:
    """The only JSON object in a text; '' where there is none, where there are more, or a brace that begins none."""
    start = text.find("{")
    try:
        _value, stop = json.JSONDecoder().raw_decode(text, start) if start >= 0 else (None, 0)
    except (ValueError, RecursionError):
        return ""
    return "" if start < 0 or "{" in text[stop:] else text[start:stop]
