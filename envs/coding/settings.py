"""The settings of the family, checked when it is made: what is wrong, what is allowed, and the nearest name."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from typing import Any


def one_of(key: str, value: Any, allowed: Iterable[str]) -> str:
    """`value` when it is allowed. Raises `ValueError` with the nearest allowed name."""
    names = list(allowed)
    if value in names:
        return str(value)
    near = get_close_matches(str(value), names, n=1)
    hint = f" (did you mean {near[0]}?)" if near else ""
    raise ValueError(f"{key}: {value!r} is not one of {', '.join(names)}{hint}")


def whole(key: str, value: Any, low: int, high: int) -> int:
    """An integer within low..high. Raises `ValueError`."""
    if type(value) is int and low <= value <= high:
        return value
    raise ValueError(f"{key}: {value!r} is not a whole number from {low} to {high}")


def flag(key: str, value: Any) -> bool:
    """True or False. Raises `ValueError`."""
    if isinstance(value, bool):
        return value
    raise ValueError(f"{key}: {value!r} is neither true nor false")


def text(key: str, value: Any) -> str:
    """A text that is not empty. Raises `ValueError`."""
    if isinstance(value, str) and value:
        return value
    raise ValueError(f"{key}: {value!r} is not a text")


def shares(key: str, value: Any, allowed: Sequence[str]) -> dict[str, float]:
    """Names with their share: a list of names (equal shares) or a mapping to numbers >= 0, not all 0."""
    if isinstance(value, str) or not isinstance(value, Sequence | Mapping):
        raise ValueError(f"{key}: {value!r} is neither a list of names nor a mapping from names to shares")
    found = dict(value) if isinstance(value, Mapping) else dict.fromkeys(value, 1.0)
    for name, share in found.items():
        one_of(key, name, allowed)
        if isinstance(share, bool) or not isinstance(share, int | float) or not 0 <= share < float("inf"):
            raise ValueError(f"{key}: the share of {name} must be a number >= 0, not {share!r}")
    if not sum(found.values()):
        raise ValueError(f"{key}: at least one of {', '.join(allowed)} must have a share above 0")
    return {name: float(found[name]) for name in allowed if found.get(name)}


def files(key: str, value: Any, splits: Sequence[str]) -> dict[str, str]:
    """Splits with the file that holds their problems. Raises `ValueError`."""
    if not isinstance(value, Mapping) or not value:
        raise ValueError(f"{key}: {value!r} is not a mapping from splits ({', '.join(splits)}) to files")
    for split, path in value.items():
        one_of(key, split, splits)
        if not isinstance(path, str) or not path:
            raise ValueError(f"{key}.{split}: {path!r} is no path of a file")
    return dict(value)
