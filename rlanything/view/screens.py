"""The pictures of a rollout for a page: which were seen before each step, and where on them its action points.

Two forms of tool calls name places: `computer_use` of Qwen's models from 0 to 999, whatever the size of the screen, and
OSWorld's `computer_13` in pixels (docs/gui.md). An action on an element by its number names no place. Actions are
untrusted texts: JSON is read, and nothing else. `rlanything` imports no environment: the numbers and patterns that
`envs/computer` has too are repeated here, and a test compares them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rlanything.core.types import Json
from rlanything.files.images import FOLDER, ImageStore
from rlanything.rollouts.runs import NamedRun

GRID = 999
"""The largest coordinate of `computer_use`; one more is taken for it."""
POINTING = frozenset(
    {
        *("mouse_move", "left_click", "left_click_drag", "right_click", "middle_click", "double_click"),
        *("triple_click", "scroll", "hscroll"),
        *("MOVE_TO", "CLICK", "RIGHT_CLICK", "DOUBLE_CLICK", "DRAG_TO", "SCROLL", "TYPING"),
    }
)
"""Actions of both forms that have a place. What another one says of a place changes nothing."""
LONGEST = 20_000
"""Characters of an action that are read, from its end."""
_CALL = re.compile(r"<tool_call>(.*?)</tool_call>", re.DOTALL)
_FENCED = re.compile(r"```[\w-]*[ \t]*\n?(.*?)```", re.DOTALL)
_SHORT = re.compile(
    r"(?:(?:click|double|right|hover) \d{1,4}|type \d{1,4}(?: .*)?|scroll \d{1,4} (?:up|down)|press [^\s{]+|"
    r"wait|done|fail)\.?",
    re.DOTALL | re.IGNORECASE | re.ASCII,
)
"""Actions that are short texts (`envs/computer/short.py`). What one of them types may be a call, and names no place."""
_SHOWN = ("sha256", "width", "height", "problem")


def screens(page: Mapping[str, Any]) -> list[list[Json]]:
    """The pictures before each step of a rollout's page (`rollouts.page`), then those after the last step.

    [] where the rollout has no picture. Of each its name and size, or why it cannot be shown."""
    every = [page["first_images"], *(step["images"] for step in page["steps"])]
    if not any(every):
        return []
    return [[{name: one[name] for name in _SHOWN} for one in seen] for seen in every]


def point(action: str, seen: Sequence[Mapping[str, Any]]) -> list[float] | None:
    """Where an action points on the last picture that was seen: shares of its width and height, from its upper left.

    None where the action names no place inside it, or is of a kind that has none."""
    size = (seen[-1]["width"], seen[-1]["height"]) if seen else (None, None)
    call = _call(action)
    if call is None or None in size:
        return None
    given = call.get("parameters", call.get("arguments", call))
    if not isinstance(given, Mapping) or "element" in given:
        return None
    relative = call.get("name") == "computer_use"
    kind = given.get("action") if relative else call.get("action_type", call.get("name"))
    if not isinstance(kind, str) or kind not in POINTING:
        return None
    pair = given.get("coordinate") if relative else [given.get("x"), given.get("y")]
    if not isinstance(pair, list) or len(pair) != 2:
        return None
    limits = [(GRID, GRID + 2) if relative else (side, side) for side in size]
    shares = [_share(value, *limit) for value, limit in zip(pair, limits, strict=True)]
    return [share for share in shares if share is not None] if None not in shares else None


def files(run: NamedRun, rollouts: Sequence[Mapping[str, Any]]) -> dict[str, Path]:
    """Name -> file of the pictures that `screens` gave for these rollouts and that can be read."""
    store = ImageStore(run.stored.folder / FOLDER)
    seen = (one for rollout in rollouts for some in rollout.get("screens", ()) for one in some)
    return {one["sha256"]: store.path(one["sha256"]) for one in seen if not one["problem"]}


def _call(action: str) -> Mapping[str, Any] | None:
    """The call of an action: in its tags, alone, in the last fenced block, or the one JSON object among words.

    None also where it could mean two things: then nothing was done (`envs/computer/reply.py`). A short text comes
    before an object among words.
    """
    text = action[-LONGEST:].strip()
    tagged, fenced = _CALL.findall(text), _FENCED.findall(text)
    if len(tagged) > 1:
        return None
    if tagged or text.startswith("{"):
        return _object(tagged[0] if tagged else text)
    if any(_SHORT.fullmatch(one.strip()) for one in (text, *fenced[-1:])):
        return None
    start = text.find("{")
    return (_object(fenced[-1]) if fenced else None) or (
        _object(text[start:], alone=False) if start >= 0 else None
    )


def _object(text: str, alone: bool = True) -> Mapping[str, Any] | None:
    """The JSON object that a text is, or with which it begins where it holds no other brace."""
    try:
        found, stop = json.JSONDecoder().raw_decode(text.strip())
    except (ValueError, RecursionError):
        return None
    rest = text.strip()[stop:]
    return found if isinstance(found, dict) and not (rest if alone else "{" in rest) else None


def _share(value: Any, most: int, beyond: int) -> float | None:
    """A coordinate as a share of `most`; None unless it is from 0 to below `beyond`."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < beyond:
        return None
    return min(round(value / most, 4), 1.0)
