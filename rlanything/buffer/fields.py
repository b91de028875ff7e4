"""What the buffer's records are made of: one canonical line of JSON each, its fields checked when read back."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from rlanything.core.ids import canonical_json
from rlanything.core.types import Json, Task


class TaskBufferError(ValueError):
    """A task buffer, or one of its files, is not what it must be; the message says what and where, in one line."""


def canonical_line(value: Json) -> bytes:
    """The one UTF-8 spelling of a record, without its newline.

    A lone surrogate, which UTF-8 cannot hold, becomes its JSON escape: a model's broken reply is kept as it came.
    """
    return canonical_json(value).encode("utf-8", "backslashreplace")


def parse_line(line: bytes) -> dict[str, Any]:
    """The JSON object on a line. Raises `TaskBufferError` for anything else."""
    try:
        value = json.loads(line)
    except (ValueError, RecursionError) as error:  # UnicodeDecodeError is a ValueError
        raise TaskBufferError(f"not a line of JSON ({error})") from error
    if not isinstance(value, dict):
        raise TaskBufferError(f"expected a JSON object, found {type(value).__name__}")
    return value


def text(data: Mapping[str, Json], key: str) -> str:
    """The string at `key`."""
    value = _present(data, key)
    if not isinstance(value, str):
        raise _unexpected(key, "a string", value)
    return value


def optional_text(data: Mapping[str, Json], key: str) -> str | None:
    """The string at `key`, or None where the file says null."""
    return None if _present(data, key) is None else text(data, key)


def count(data: Mapping[str, Json], key: str) -> int:
    """The integer, zero or more, at `key`."""
    value = _present(data, key)
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise _unexpected(key, "an integer of at least 0", value)
    return value


def whole(data: Mapping[str, Json], key: str) -> int:
    """The integer, of either sign, at `key`."""
    value = _present(data, key)
    if not isinstance(value, int) or isinstance(value, bool):
        raise _unexpected(key, "an integer", value)
    return value


def share(data: Mapping[str, Json], key: str) -> float:
    """The number in [0, 1] at `key`, as a float."""
    value = _present(data, key)
    if not isinstance(value, int | float) or isinstance(value, bool) or not 0 <= value <= 1:
        raise _unexpected(key, "a number in [0, 1]", value)
    return float(value)


def optional_share(data: Mapping[str, Json], key: str) -> float | None:
    """The number at `key`, or None where the file says null."""
    return None if _present(data, key) is None else share(data, key)


def sequence(data: Mapping[str, Json], key: str) -> list[Json]:
    """The list at `key`."""
    value = _present(data, key)
    if not isinstance(value, list):
        raise _unexpected(key, "a list", value)
    return value


def task(data: Mapping[str, Json], key: str) -> Task:
    """The task at `key`, its id verified against its content."""
    value = _present(data, key)
    if not isinstance(value, dict):
        raise _unexpected(key, "a task", value)
    for part in ("env", "instruction", "task_id"):
        text(value, part)
    for part in ("payload", "metadata"):
        if not isinstance(_present(value, part), dict):
            raise _unexpected(part, "an object", value[part])
    return Task.from_json(value)


def optional_task(data: Mapping[str, Json], key: str) -> Task | None:
    """The task at `key`, or None where the file says null."""
    return None if _present(data, key) is None else task(data, key)


def check_share(name: str, value: float | None) -> None:
    """Raise unless `value` is None or lies in [0, 1]; NaN does not."""
    if value is not None and not 0.0 <= value <= 1.0:
        raise TaskBufferError(f"{name} must lie in [0, 1], got {value}")


def _present(data: Mapping[str, Json], key: str) -> Json:
    if key not in data:
        raise TaskBufferError(f"field {key!r} is missing")
    return data[key]


def _unexpected(key: str, expected: str, value: Json) -> TaskBufferError:
    return TaskBufferError(
        f"field {key!r} must be {expected}, found {type(value).__name__} {str(value)[:40]!r}"
    )
