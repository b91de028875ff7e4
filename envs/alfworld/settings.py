"""The settings of the family, checked when it is made: what is wrong, what is allowed, and the nearest name."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

Range = tuple[int, int]


@dataclass(frozen=True)
class Level:
    """A degree of difficulty: ranges to draw the knobs from (both ends included)."""

    copies: Range
    hidden: bool | None
    destinations: Range


LEVELS = {
    "easy": Level(copies=(2, 3), hidden=False, destinations=(1, 3)),
    "medium": Level(copies=(1, 2), hidden=None, destinations=(1, 2)),
    "hard": Level(copies=(1, 1), hidden=True, destinations=(1, 1)),
}
"""`hidden`: True = the target lies in closed receptacles only, False = in sight, None = anywhere."""


def one_of(key: str, value: Any, allowed: Iterable[str]) -> str:
    """`value` when it is allowed. Raises `ValueError` with the nearest allowed name."""
    names = list(allowed)
    if value in names:
        return str(value)
    near = get_close_matches(str(value), names, n=1)
    hint = f" (did you mean {near[0]}?)" if near else ""
    raise ValueError(f"{key}: {value!r} is not one of {', '.join(names)}{hint}")


def int_range(key: str, value: Any, low: int, high: int) -> Range:
    """`[least, most]` within low..high. Raises `ValueError`."""
    numbers = list(value) if isinstance(value, Sequence) and not isinstance(value, str) else []
    if len(numbers) == 2 and all(type(n) is int for n in numbers) and low <= numbers[0] <= numbers[1] <= high:
        return numbers[0], numbers[1]
    raise ValueError(f"{key}: {value!r} is not [least, most] with {low} <= least <= most <= {high}")


def weights(key: str, value: Any, allowed: Sequence[str]) -> dict[str, float]:
    """Names with their share: a list of names (equal shares) or a mapping to numbers >= 0, not all 0."""
    if isinstance(value, str) or not isinstance(value, Sequence | Mapping):
        raise ValueError(f"{key}: {value!r} is neither a list of names nor a mapping from names to shares")
    shares = dict(value) if isinstance(value, Mapping) else dict.fromkeys(value, 1.0)
    for name, share in shares.items():
        one_of(key, name, allowed)
        if isinstance(share, bool) or not isinstance(share, int | float) or not 0 <= share < float("inf"):
            raise ValueError(f"{key}: the share of {name} must be a number >= 0, not {share!r}")
    if not sum(shares.values()):
        raise ValueError(f"{key}: at least one of {', '.join(allowed)} must have a share above 0")
    return {name: float(shares[name]) for name in allowed if shares.get(name)}


def seconds(key: str, value: Any) -> float:
    """A time above 0. Raises `ValueError`."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < float("inf"):
        raise ValueError(f"{key}: {value!r} is not a number of seconds above 0")
    return float(value)
