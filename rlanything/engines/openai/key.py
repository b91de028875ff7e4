"""The key of an endpoint: read from the environment, sent to the endpoint, and never shown or stored."""

from __future__ import annotations

import os
from typing import NoReturn

from rlanything.config import Endpoint
from rlanything.core.errors import ConfigError

MASK = "[key]"
SHORTEST = 8
"""Characters. The key is masked wherever it occurs; a shorter one would mask ordinary words."""


class Key:
    """A key that can be sent and masked, and nothing else: neither printed, nor copied, nor pickled."""

    __slots__ = ("_value",)

    def __init__(self, value: str = "") -> None:
        self._value = value

    @classmethod
    def of(cls, endpoint: Endpoint, name: str) -> Key:
        """The key in the environment variable that the endpoint names. name: the role, for messages.

        Raises `ConfigError` when the variable is not set, or holds what cannot be a key. The value is not shown.
        """
        variable = endpoint.key_env
        if variable is None:
            return cls()
        value = os.environ.get(variable, "").strip()
        if not value:
            raise ConfigError(
                f"endpoints.{name}.key_env = {variable}: this environment variable is not set; put the key into it, or "
                f"set endpoints.{name}.key_env=null for an endpoint without a key"
            )
        if len(value) < SHORTEST or not value.isascii() or not value.isprintable() or " " in value:
            raise ConfigError(
                f"endpoints.{name}.key_env = {variable}: its value cannot be a key; allowed are at least {SHORTEST} "
                "visible ASCII characters without spaces"
            )
        return cls(value)

    def headers(self) -> dict[str, str]:
        """The header of a request."""
        return {"Authorization": f"Bearer {self._value}"} if self._value else {}

    def masked(self, text: str) -> str:
        """The text, with the key masked: a server may repeat what it was sent."""
        return text.replace(self._value, MASK) if self._value else text

    def __repr__(self) -> str:
        return "Key(set)" if self._value else "Key(none)"

    def __reduce__(self) -> NoReturn:
        raise TypeError("a key is not pickled: every process reads it from its environment")
