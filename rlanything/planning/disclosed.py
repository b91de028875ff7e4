"""What a configuration gives away: secrets that would be recorded, keys that are sent, programs without a sandbox."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import urlsplit

from rlanything.config import Config
from rlanything.config.endpoints import SECRETS
from rlanything.core.errors import ConfigError
from rlanything.core.printable import safe

SECRET = re.compile(rf"{SECRETS.pattern}|passw|passphrase|credential|(access|private)[-_]?key", re.IGNORECASE)
"""Names whose values are secrets, wherever they stand."""
RECORDED = ("train.loggers", "train.callbacks")
"""Sections whose keys are the arguments of anybody's classes."""
_ENVIRONMENT = re.compile(r"\$\{\s*oc\.env\b")
_ADVICE = "would be recorded with the configuration; let the class read it from the environment itself"


def check_names(config: Config) -> None:
    """Raise `ConfigError` for an argument of a logger or callback that has a value and a secret's name."""
    for section, named in zip(RECORDED, (config.train.loggers, config.train.callbacks), strict=True):
        for key, value in _leaves(named, section):
            words = key.removeprefix(f"{section}.").split(".")[1:]  # the first is a name of one's own
            if value is not None and any(map(SECRET.search, words)):
                raise ConfigError(f"{safe(key)}: looks like a secret, and {_ADVICE}")


def check_interpolations(data: Mapping[str, Any]) -> None:
    """Raise `ConfigError` for an argument of a logger or callback that is a variable of the environment.

    data: the composition before its interpolations are resolved.
    """
    train = data.get("train")
    given = train if isinstance(train, dict) else {}
    for section in RECORDED:
        for key, value in _leaves(given.get(section.partition(".")[2]), section):
            if isinstance(value, str) and _ENVIRONMENT.search(value):
                raise ConfigError(f"{safe(key)} = '{safe(value[:100])}': its value {_ADVICE}")


def notes(config: Config) -> list[str]:
    """Which programs run without a sandbox, and which variable of the environment goes to which host."""
    env = config.env
    found = []
    if env.get("backend") == "subprocess" and env.get("trusted") is True:
        found.append(
            "env.backend = subprocess with env.trusted = true: programs that models write run without a sandbox, as you"
        )
    for role, endpoint in config.endpoints.served.items():
        if endpoint.key_env is not None:
            host = urlsplit(endpoint.base_url).netloc
            found.append(f"endpoints.{role}: the variable {endpoint.key_env} is sent to {host}")
    return found


def _leaves(value: Any, key: str) -> Iterator[tuple[str, Any]]:
    """(key, value) of everything below a section that is neither a mapping nor a list."""
    if isinstance(value, Mapping):
        for name, item in value.items():
            yield from _leaves(item, f"{key}.{name}")
    elif isinstance(value, (list, tuple)):
        for number, item in enumerate(value):
            yield from _leaves(item, f"{key}.{number}")
    else:
        yield key, value
