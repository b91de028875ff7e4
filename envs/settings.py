"""Checks of the arguments of a task family. Messages name the key, the value, and what is allowed.

All of these raise `ValueError`, which `rlanything` reports before any work starts.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from typing import Any

from rlanything.core.printable import shown

Range = tuple[int, int]
LONGEST = 86_400
"""Seconds: a day. Waits of months overflow the clocks of an operating system."""


def not_one_of(value: object, allowed: Iterable[str]) -> str:
    """The message for a value that is not allowed, with the nearest name that is."""
    names = list(allowed)
    near = get_close_matches(str(value), names, n=1)
    hint = f" (did you mean {near[0]}?)" if near else ""
    return f"{shown(value)} is not one of {', '.join(names)}{hint}"


def one_of(key: str, value: Any, allowed: Iterable[str]) -> str:
    """`value` when it is allowed."""
    names = list(allowed)
    if value not in names:
        raise ValueError(f"{key}: {not_one_of(value, names)}")
    return str(value)


def whole(key: str, value: Any, low: int, high: int) -> int:
    """An integer within low..high."""
    if type(value) is int and low <= value <= high:
        return value
    raise ValueError(f"{key}: {shown(value)} is not a whole number from {low} to {high}")


def int_range(key: str, value: Any, low: int, high: int) -> Range:
    """`[least, most]` within low..high."""
    numbers = list(value) if isinstance(value, Sequence) and not isinstance(value, str) else []
    if len(numbers) == 2 and all(type(n) is int for n in numbers) and low <= numbers[0] <= numbers[1] <= high:
        return numbers[0], numbers[1]
    raise ValueError(f"{key}: {shown(value)} is not [least, most] with {low} <= least <= most <= {high}")


def seconds(key: str, value: Any) -> float:
    """A time above 0, and at most a day."""
    if not _is_number(value) or not 0 < value <= LONGEST:
        raise ValueError(f"{key}: {shown(value)} is not a number of seconds above 0 and at most {LONGEST}")
    return float(value)


def flag(key: str, value: Any) -> bool:
    """True or False."""
    if isinstance(value, bool):
        return value
    raise ValueError(f"{key}: {shown(value)} is neither true nor false")


def text(key: str, value: Any) -> str:
    """A text that is not empty."""
    if isinstance(value, str) and value:
        return value
    raise ValueError(f"{key}: {shown(value)} is not a text")


def names(key: str, value: Any) -> tuple[str, ...]:
    """A list of texts, at least one, none of them empty."""
    found = [] if isinstance(value, str) or not isinstance(value, Sequence) else list(value)
    if found and all(isinstance(one, str) and one for one in found):
        return tuple(found)
    raise ValueError(f"{key}: {shown(value)} is not a list of texts")


def some(key: str, value: Any, allowed: Sequence[str]) -> tuple[str, ...]:
    """A list of some of the allowed names, each once, but not of all."""
    if isinstance(value, str) or not isinstance(value, Sequence):
        raise ValueError(f"{key}: {shown(value)} is not a list of names")
    for name in value:
        one_of(key, name, allowed)
    if len(set(value)) < len(value):
        raise ValueError(f"{key}: {list(value)!r} names one twice")
    if value and len(value) == len(allowed):
        raise ValueError(f"{key}: {list(value)!r} leaves none of {', '.join(allowed)}")
    return tuple(value)


def shares(key: str, value: Any, allowed: Sequence[str]) -> dict[str, float]:
    """Names with their share: a list of names (equal shares) or a mapping to numbers >= 0, not all 0."""
    if isinstance(value, str) or not isinstance(value, Sequence | Mapping):
        raise ValueError(
            f"{key}: {shown(value)} is neither a list of names nor a mapping from names to shares"
        )
    for name in value:
        one_of(key, name, allowed)
    found = dict(value) if isinstance(value, Mapping) else dict.fromkeys(value, 1.0)
    for name, share in found.items():
        if not _is_number(share) or share < 0:
            raise ValueError(f"{key}: the share of {name} must be a number >= 0, not {shown(share)}")
    if not _is_number(sum(map(float, found.values()))):
        raise ValueError(f"{key}: {shown(value)}: the sum of the shares is too large for a number")
    if not sum(found.values()):
        raise ValueError(f"{key}: at least one of {', '.join(allowed)} must have a share above 0")
    return {name: float(found[name]) for name in allowed if found.get(name)}


def chances(key: str, value: Any, allowed: Sequence[str]) -> dict[str, float]:
    """Names with a probability, 0..1."""
    if not isinstance(value, Mapping):
        raise ValueError(
            f"{key}: {shown(value)} is not a mapping from names ({', '.join(allowed)}) to probabilities"
        )
    for name, chance in value.items():
        one_of(key, name, allowed)
        if not _is_number(chance) or not 0 <= chance <= 1:
            raise ValueError(f"{key}.{name}: {shown(chance)} is not a probability from 0 to 1")
    return {name: float(chance) for name, chance in value.items()}


def files(key: str, value: Any) -> dict[str, str]:
    """Names of splits with the file that holds their tasks."""
    if not isinstance(value, Mapping) or not value:
        raise ValueError(f"{key}: {shown(value)} is not a mapping from splits to files")
    for split, path in value.items():
        if not isinstance(split, str):
            raise ValueError(f"{key}: {shown(split)} is no name of a split")
        if not isinstance(path, str) or not path:
            raise ValueError(f"{key}.{split}: {shown(path)} is no path of a file")
    return dict(value)


def _is_number(value: Any) -> bool:
    """Whether a value is a number that a float holds."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    try:
        return math.isfinite(value)
    except OverflowError:  # a whole number beyond all floats
        return False
