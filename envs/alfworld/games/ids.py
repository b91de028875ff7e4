"""ALFRED's ids: as PDDL symbols and back, their class, and the names that a player reads."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable

OBJECT_ID = re.compile(r"[A-Za-z]+(\|[+-]?[0-9.]+){3}(\|[A-Za-z0-9_]+)?")
"""`Apple|+01.20|+00.93|-00.41`; a basin has a fourth part: `Sink|..|..|..|SinkBasin`."""
LOCATION_ID = re.compile(r"loc(\|-?[0-9]+){4}")
"""`loc|x|z|rotation|horizon`: quarter metres, quarter turns, degrees."""

_MANGLED = {"-": "_minus_", "#": "-", "|": "_bar_", "+": "_plus_", ".": "_dot_", ",": "_comma_"}
_TO_PDDL = str.maketrans(_MANGLED)
_FROM_PDDL = {"_minus_": "-", "_bar_": "|", "_plus_": "+", "_dot_": ".", "_comma_": ","}
_SYMBOL = re.compile("|".join(_FROM_PDDL))


def to_pddl(text: str) -> str:
    """ALFRED's mangling of ids and of whole problems (`#` stands for PDDL's `-`)."""
    return text.translate(_TO_PDDL)


def from_pddl(symbol: str) -> str:
    """The id that a PDDL symbol stands for."""
    return _SYMBOL.sub(lambda m: _FROM_PDDL[m.group()], symbol)


def class_of(object_id: str) -> str:
    """`Apple|..` -> `Apple`, `Sink|..|SinkBasin` -> `SinkBasin`."""
    return object_id.rsplit("|", 1)[-1] if object_id.endswith("Basin") else object_id.split("|", 1)[0]


def sort_key(object_id: str) -> str:
    """The order in which the real engine lists things: its lower-case PDDL symbols."""
    return to_pddl(object_id).lower()


def display_names(object_ids: Iterable[str]) -> dict[str, str]:
    """id -> `apple 2`. As in the original, the numbers run backwards along the sorted symbols."""
    ordered = sorted(object_ids, key=sort_key)
    left = Counter(_base_name(i) for i in ordered)
    names: dict[str, str] = {}
    for object_id in ordered:
        base = _base_name(object_id)
        names[object_id] = f"{base} {left[base]}"
        left[base] -= 1
    return names


def _base_name(object_id: str) -> str:
    """As the original has it: the first part, plus `basin` when that word occurs anywhere in the id."""
    lower = object_id.lower()
    return lower.split("|", 1)[0] + ("basin" if "basin" in lower else "")
