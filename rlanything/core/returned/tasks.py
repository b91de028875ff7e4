"""Which tasks can be stored: those that JSON gives back as they are."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator

from rlanything.core.ids import canonical_json
from rlanything.core.types import Json, Task


def unstorable(task: Task) -> str:
    """Why JSON would not give the task back as it is, with the place of the first such value; '' where it does.

    A run makes its tasks once and reads them from files afterwards.
    """
    texts = {"env": task.env, "instruction": task.instruction}
    for place, text in texts.items():
        if not isinstance(text, str):
            return f"its {place} is {_typed(text)}; a str is wanted"
    values = {"payload": task.payload, "metadata": task.metadata}
    found = [*_others(values["payload"], "payload"), *_others(values["metadata"], "metadata")]
    if not found and json.loads(canonical_json(values)) != values:
        found = ["its payload or metadata holds a text with the two halves of a surrogate pair"]
    return found[0] if found else ""


def _others(value: Json, place: str) -> Iterator[str]:
    """What is no JSON value in `value`, with its place."""
    if isinstance(value, dict):
        for key, item in value.items():
            if isinstance(key, str):
                yield from _others(item, f"{place}[{key!r}]")
            else:
                yield f"{place} has the key {key!r}, {_typed(key)}; JSON has keys of type str only"
    elif isinstance(value, list):
        for number, item in enumerate(value):
            yield from _others(item, f"{place}[{number}]")
    elif isinstance(value, float) and not math.isfinite(value):
        yield f"{place} is {value}, which JSON has no number for"
    elif not isinstance(value, str | int | float | None):
        yield f"{place} is {_typed(value)}; JSON has {'lists' if isinstance(value, tuple) else 'no such type'}"


def _typed(value: object) -> str:
    return f"of type {type(value).__name__}"
