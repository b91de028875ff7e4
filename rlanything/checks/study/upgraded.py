"""Whether two registered configurations are of one experiment, when the code has gained or lost keys between them."""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from typing import Any

from pydantic import ValidationError

from rlanything.config import Config

CLASSES = ("env", "engine")
"""Sections whose keys are the arguments of a class, which code can gain and lose as well."""


def changed(before: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """The keys that say that the experiments differ.

    A key that the code has gained counts where its value is not the default. One that it has lost does not count.
    """
    old, new = _leaves(_upgraded(before)), _leaves(_upgraded(now))
    return [
        key
        for key in {**old, **new}
        if (old[key] != new[key] if key in old and key in new else _counts(key, old, new))
    ]


def _counts(key: str, old: Mapping[str, Any], new: Mapping[str, Any]) -> bool:
    """Whether a key that only one side has is a difference of the experiments.

    It is where the other side has a value in place of its section (`null`), or other entries of the mapping that it
    is in. An argument of a class, or a whole mapping, may have come with the code.
    """
    other = new if key in old else old
    parent = key.rpartition(".")[0]
    above = [key[:place] for place, sign in enumerate(key) if sign == "."]
    if any(name in other for name in above) or any(name.startswith(f"{key}.") for name in other):
        return True
    return parent not in CLASSES and any(name.startswith(f"{parent}.") for name in other)


def _leaves(value: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """The values with nested keys joined by dots. An empty mapping is a value."""
    found: dict[str, Any] = {}
    for key, item in value.items():
        nested = isinstance(item, Mapping) and item
        found |= _leaves(item, f"{prefix}{key}.") if nested else {f"{prefix}{key}": item}
    return found


def _upgraded(configuration: Mapping[str, Any]) -> dict[str, Any]:
    """The same as today's code would write it; as it is where that code cannot read it."""
    given = deepcopy(dict(configuration))
    while True:
        try:
            return Config.model_validate(given).model_dump(mode="json", by_alias=True)
        except ValidationError as error:
            lost = [item["loc"] for item in error.errors() if item["type"] == "extra_forbidden"]
            if not lost:
                return dict(configuration)
            for *place, name in lost:
                section: Any = given
                for part in place:
                    section = section[part]
                del section[name]
