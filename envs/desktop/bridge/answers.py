"""What a world says, read as what it is: text from another program. Types are checked and sizes are bounded."""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from rlanything.core.errors import EnvironmentFailure
from rlanything.core.images import Image
from rlanything.core.printable import one_line

VERSION = 1
"""Of the protocol."""
LONGEST_LINE = 64 * 2**20
"""Bytes of an answer, and so of an accessibility tree; `play.screen` reads a part of it."""
LARGEST_PICTURE = 24 * 2**20
"""Characters of a screenshot, in base64."""
LARGEST_SIDE = 8192
"""Pixels."""


class WorldError(EnvironmentFailure):
    """A world failed, or said what it must not say. The episode that asked gets the status `env_error`."""


class WorldEnded(WorldError):
    """A world has ended."""


class WorldTimeout(EnvironmentFailure, TimeoutError):
    """A world did not answer in time. The episode that asked gets the status `timeout`."""


class TaskFailed(WorldError):
    """A world could not set up or verify a task, and said so. It can be asked for another task."""


@dataclass(frozen=True, slots=True)
class Hello:
    """What a world says of itself. screen: width and height, pixels. facts: names and values for the record."""

    world: str
    screen: tuple[int, int]
    facts: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Sight:
    """What a world shows. tree: XML. Without a screenshot or tree where none was asked for. done: it has ended."""

    screenshot: Image | None
    tree: str
    done: bool = False


def answer(line: bytes, number: int) -> Mapping[str, Any]:
    """The content of the answer to request `number`. Raises `WorldError`, and `TaskFailed` for an error as a value."""
    try:
        said = json.loads(line)
    except (ValueError, RecursionError):
        raise WorldError(f"the world's answer is no JSON: {_shown(line)}") from None
    if not isinstance(said, dict) or said.get("id") != number:
        raise WorldError(f"the world answers another question than number {number}: {_shown(line)}")
    error = said.get("error")
    if isinstance(error, dict):
        text = one_line(str(error.get("message", "")))[:2000]
        raise (TaskFailed if error.get("kind") in ("task", "evaluator") else WorldError)(text or "no message")
    content = said.get("ok")
    if not isinstance(content, dict):
        raise WorldError(f"the world's answer has neither ok nor error: {_shown(line)}")
    return content


def hello(content: Mapping[str, Any]) -> Hello:
    """What a world says of itself. Raises `WorldError`."""
    if content.get("version") != VERSION:
        said = one_line(repr(content.get("version")))[:40]
        raise WorldError(f"the world speaks version {said} of the protocol, this project version {VERSION}")
    screen, facts = content.get("screen"), content.get("facts", {})
    if not _is_screen(screen):
        raise WorldError("the world's screen is not two numbers of pixels")
    if not isinstance(facts, dict) or len(facts) > 50:
        raise WorldError("the world's facts are no mapping of at most 50 entries")
    kept = {one_line(str(key))[:80]: one_line(str(value))[:400] for key, value in facts.items()}
    return Hello(one_line(str(content.get("world", "")))[:80], (screen[0], screen[1]), kept)  # type: ignore[index]


def sight(content: Mapping[str, Any], screen: tuple[int, int]) -> Sight:
    """What a world shows. Raises `WorldError`, also for a picture that is no PNG or not of this size."""
    picture, tree, done = content.get("screenshot"), content.get("tree"), content.get("done", False)
    if not isinstance(done, bool) or not isinstance(tree, str | None) or not isinstance(picture, str | None):
        raise WorldError("the world's sight is not a screenshot, a tree, and whether it is over")
    return Sight(_picture(picture or "", screen), tree or "", done)


def score(content: Mapping[str, Any]) -> float:
    """The verdict of an evaluator, 0..1. Raises `WorldError`."""
    value = content.get("score")
    if isinstance(value, bool):
        value = float(value)
    if isinstance(value, int):
        value = min(max(value, 0), 1)  # an integer can be too large for a float
    if not isinstance(value, float | int) or not math.isfinite(value):
        raise WorldError(f"the evaluator's score is no number: {one_line(repr(value))[:80]}")
    return min(max(float(value), 0.0), 1.0)


def _picture(text: str, screen: tuple[int, int]) -> Image | None:
    """A screenshot: a whole PNG of the screen's size, which is not decoded."""
    if not text:
        return None
    if len(text) > LARGEST_PICTURE:
        raise WorldError(f"the screenshot has more than {LARGEST_PICTURE} characters")
    try:
        found = Image(base64.b64decode(text, validate=True))
    except ValueError as error:  # among them binascii.Error
        raise WorldError(f"the screenshot cannot be read: {error}") from None
    if (found.width, found.height) != screen:
        raise WorldError(
            f"the screenshot has {found.width} x {found.height} pixels, the screen {screen[0]} x {screen[1]}"
        )
    return found


def _is_screen(value: object) -> bool:
    return (
        isinstance(value, list)
        and len(value) == 2
        and all(type(side) is int and 1 <= side <= LARGEST_SIDE for side in value)
    )


def _shown(line: bytes) -> str:
    return one_line(line[:200].decode("utf-8", "replace"))
