"""Which action a model's reply holds: a tool call in its tags, a tool call alone, or a short text."""

from __future__ import annotations

import json
import re

from envs.computer import computer_use, short, tool_calls
from envs.computer.actions import Action, Refusal
from envs.computer.keyboard import DESKTOP

LONGEST = 20_000
"""Characters of a reply that are read, from its end."""
_CALL = re.compile(r"<tool_call>(.*?)</tool_call>", re.DOTALL)


def read(text: str, screen: tuple[int, int]) -> Action | Refusal:
    """The action of a reply, without its thought, for a desktop of this size in pixels. The text is untrusted."""
    text = text[-LONGEST:].strip()
    calls = _CALL.findall(text)
    if len(calls) > 1:
        return Refusal("one reply holds one tool call.")
    if calls:
        text = calls[0].strip()
    if not text.startswith("{"):
        return short.parse(text, DESKTOP)
    if len(text) > tool_calls.LONGEST:
        return Refusal(f"a tool call has at most {tool_calls.LONGEST} characters.")
    try:
        call = json.loads(text)
    except (ValueError, RecursionError):
        return Refusal("that is no JSON object.")
    if isinstance(call, dict) and call.get("name") == computer_use.NAME:
        return computer_use.read(call, screen)
    return tool_calls.read(call, DESKTOP)
