"""Arguments of a tool call, which is untrusted JSON: their types and limits, the same for every tool."""

from __future__ import annotations

import math

from envs.computer.actions import MOST_KEYS, untypable
from envs.computer.keyboard import Keyboard
from rlanything.core.errors import ModelOutputError


class Wrong(ModelOutputError):
    """An argument that is not allowed; becomes a `Refusal`."""


def number(value: object, name: str, low: float, high: float) -> float:
    """A number in these limits. Raises `Wrong`, also for NaN."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not low <= value <= high:
        raise Wrong(f"{name} must be a number from {low:g} to {high:g}.")
    return value


def clamped(value: object, name: str, low: float, high: float) -> float:
    """A number, and what lies outside of these limits as the nearest of them. Raises `Wrong`, also for NaN."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not -math.inf <= value <= math.inf:
        raise Wrong(f"{name} must be a number.")
    return min(max(value, low), high)


def text(value: object) -> str:
    """What is typed. Raises `Wrong`."""
    if not isinstance(value, str):
        raise Wrong("text must be a text.")
    if reason := untypable(value):
        raise Wrong(reason)
    return value


def keys(value: object, name: str, keyboard: Keyboard) -> tuple[str, ...]:
    """The keys that a list of names, or one name, is for. Raises `Wrong`."""
    wanted = value if isinstance(value, list) else [value]
    known = [keyboard.key(one) if isinstance(one, str) else None for one in wanted[: MOST_KEYS + 1]]
    found = tuple(key for key in known if key is not None)
    if not 1 <= len(found) == len(known) <= MOST_KEYS:
        raise Wrong(f"{name} must name 1 to {MOST_KEYS} known keys.")
    return found
