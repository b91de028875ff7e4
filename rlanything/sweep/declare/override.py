"""Hydra overrides that are made from keys and values of any kind, so that Hydra reads them as they were."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from rlanything.core.errors import ConfigError

PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")
"""Keys that an override can name."""
WORDS = ("null", "true", "false", "nan", "inf")
"""Keys that Hydra reads as values."""
SET_OTHERWISE = {"train.seeds": "seeds", "train.workers": "--workers"}
"""Keys that no override of a sweep or a check may set, and what sets them."""


def written(value: Any) -> str:
    """A value as Hydra reads it. Raises `ConfigError` for a mapping with a key that it would read as another one."""
    from hydra.core.override_parser.types import Quote, QuotedString

    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{named(key)}: {written(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(written, value)) + "]"
    if isinstance(value, str):
        return str(QuotedString(value, Quote.double).with_quotes())
    return json.dumps(value)


def named(key: str, prefix: str = "") -> str:
    """The key with its place before it. Raises `ConfigError` where Hydra would read it as something else."""
    if not PLAIN.fullmatch(key) or key.lower() in WORDS:
        raise ConfigError(
            f"{prefix}{key}: no Hydra override can name this key; write it into a file of experiments/"
        )
    return f"{prefix}{key}"
