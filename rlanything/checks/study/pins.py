"""Overrides that take back what `experiments/` says otherwise today than when a study was registered."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from rlanything.checks.study.upgraded import alike, upgraded
from rlanything.config import Config
from rlanything.sweep.declare.override import named, written


def pins(before: Mapping[str, Any], now: Mapping[str, Any]) -> tuple[str, ...]:
    """Hydra overrides that make of the configuration `now` the older one, as far as today's code has its keys.

    Raises `ConfigError` for a key that no override can name.
    """
    old, new = alike(before, now)
    return tuple(_pins(old, new, upgraded(Config, before), ""))


def _pins(
    old: Mapping[str, Any], new: Mapping[str, Any], given: Mapping[str, Any], prefix: str
) -> Iterator[str]:
    """given: the older one without defaults of arguments that it did not have."""
    for key in {**old, **new}:
        if key in old and key in new and old[key] == new[key]:
            continue
        name = named(key, prefix)
        if key not in given:
            yield f"~{name}"
        elif isinstance(old[key], Mapping) and isinstance(new.get(key), Mapping):
            yield from _pins(old[key], new[key], given[key], f"{name}.")
        else:
            yield f"++{name}={written(old[key])}"
