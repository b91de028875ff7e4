"""Whether two registrations are of one study, when the code has gained or lost keys between them."""

from __future__ import annotations

import inspect
import json
from collections.abc import Mapping
from copy import deepcopy
from typing import Any

from pydantic import BaseModel, ValidationError

from rlanything import targets
from rlanything.checks.study.declare import Study
from rlanything.config import Config
from rlanything.core.errors import ConfigError

CLASSES = ("env", "engine")
"""Sections whose keys are the arguments of a class, which code can gain and lose as well."""


def changed(before: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """The keys of two configurations that say that the experiments differ.

    A key that the code has gained counts where its value is not the default. One that it has lost does not count.
    """
    return differing(*alike(before, now))


def declared_otherwise(before: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """The keys of two declarations that say that the studies differ, as in `changed`."""
    return differing(upgraded(Study, before), upgraded(Study, now))


def differing(before: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """The keys that differ, or that one of both alone has, nested ones joined by dots."""
    old, new = _leaves(before), _leaves(now)
    return [key for key in {**old, **new} if key not in old or key not in new or old[key] != new[key]]


def alike(before: Mapping[str, Any], now: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Both configurations as today's code would write them, with the same arguments of the same class."""
    old, new = upgraded(Config, before), upgraded(Config, now)
    for name in CLASSES:
        _complete(name, old.get(name), new.get(name))
    return old, new


def _complete(name: str, old: Any, new: Any) -> None:
    """Give each section the arguments that only the other one has, at their defaults.

    An argument of the old one that the class has lost is removed. Without the class every such argument counts.
    """
    if not isinstance(old, dict) or not isinstance(new, dict) or old.keys() == new.keys():
        return
    try:
        taken = inspect.signature(targets.named_class(new, name, object)).parameters
    except (ConfigError, KeyError):
        return
    anything = any(one.kind is inspect.Parameter.VAR_KEYWORD for one in taken.values())
    for key in old.keys() ^ new.keys():
        if key in taken and taken[key].default is not inspect.Parameter.empty:
            default = json.loads(json.dumps(taken[key].default, default=str))  # a tuple is a list in JSON
            old.setdefault(key, default)
            new.setdefault(key, default)
        elif key not in taken and not anything:
            old.pop(key, None)


def _leaves(value: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """The values with nested keys joined by dots. An empty mapping is a value."""
    found: dict[str, Any] = {}
    for key, item in value.items():
        nested = isinstance(item, Mapping) and item
        found |= _leaves(item, f"{prefix}{key}.") if nested else {f"{prefix}{key}": item}
    return found


def upgraded(model: type[BaseModel], written: Mapping[str, Any]) -> dict[str, Any]:
    """The same as today's code would write it; as it is where that code cannot read it."""
    given = deepcopy(dict(written))
    while True:
        try:
            return model.model_validate(given).model_dump(mode="json", by_alias=True)
        except ValidationError as error:
            lost = [item["loc"] for item in error.errors() if item["type"] == "extra_forbidden"]
            if not lost:
                return deepcopy(dict(written))
            for *place, name in lost:
                section: Any = given
                for part in place:
                    section = section[part]
                del section[name]
