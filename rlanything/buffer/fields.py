"""The fields of the buffer's records: written as one canonical line of JSON, checked when they are read back.

The checks are by hand because pydantic's strings cannot hold a lone surrogate, and a model's reply may contain one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from rlanything.core.errors import UserError
from rlanything.core.ids import canonical_json
from rlanything.core.types import Json, Task
from rlanything.files.reader import FileError, parse

Value = TypeVar("Value")


class TaskBufferError(UserError):
    """A task buffer or one of its files is wrong. The message says what and where, in one line."""


def canonical_line(value: Json) -> bytes:
    """A record as canonical JSON in UTF-8, without a newline."""
    return canonical_json(value).encode()


def parse_line(line: bytes) -> dict[str, Any]:
    """The JSON object on a line. Raises `TaskBufferError` for anything else."""
    try:
        value = parse(line)
    except FileError as error:
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


def optional(
    read: Callable[[Mapping[str, Json], str], Value], data: Mapping[str, Json], key: str
) -> Value | None:
    """What `read` finds at `key`, or None where the file says null."""
    return None if _present(data, key) is None else read(data, key)


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


def sequence(data: Mapping[str, Json], key: str) -> list[Json]:
    """The list at `key`."""
    value = _present(data, key)
    if not isinstance(value, list):
        raise _unexpected(key, "a list", value)
    return value


def task(data: Mapping[str, Json], key: str) -> Task:
    """The task at `key`. Its id must be the hash of its content."""
    value = _present(data, key)
    if not isinstance(value, dict):
        raise _unexpected(key, "a task", value)
    for part in ("env", "instruction", "task_id"):
        text(value, part)
    for part in ("payload", "metadata"):
        if not isinstance(_present(value, part), dict):
            raise _unexpected(part, "an object", value[part])
    return Task.from_json(value)


def check_share(name: str, value: float | None) -> None:
    """Raise `TaskBufferError` unless `value` is None or in [0, 1]. NaN is not."""
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
