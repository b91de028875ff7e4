"""How the servers of a model are run: what the section `engine` says of them, checked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from rlanything.engines.vllm.support import UnsupportedError

CHECKED = ("replicas", "addresses", "folder", "start_s", "request_s", "restarts")
"""The arguments of the engine that `check_serving` has, with the same defaults."""


@dataclass(frozen=True)
class Serving:
    """See `engine.VllmServers`."""

    replicas: int
    addresses: tuple[str, ...]
    folder: str | None
    start_s: float
    request_s: float
    restarts: int


def check_serving(
    replicas: int = 1,
    addresses: Sequence[str] = (),
    folder: str | None = None,
    start_s: float = 900.0,
    request_s: float = 600.0,
    restarts: int = 3,
) -> Serving:
    """The settings. Raises `UnsupportedError` for values of the section `engine` that are not allowed."""
    for name, count, least in (("replicas", replicas, 1), ("restarts", restarts, 0)):
        if isinstance(count, bool) or not isinstance(count, int) or count < least:
            raise UnsupportedError(f"{name} = {count!r}: must be a whole number of at least {least}")
    for name, seconds in (("start_s", start_s), ("request_s", request_s)):
        number = isinstance(seconds, int | float) and not isinstance(seconds, bool)
        if not number or not 0 < seconds < float("inf"):
            raise UnsupportedError(f"{name} = {seconds!r}: must be a number of seconds above 0")
    if isinstance(addresses, str):
        raise UnsupportedError(f"addresses = {addresses!r}: must be a list, such as [{addresses}]")
    for address in addresses:
        _check_address(str(address))
    if len(set(addresses)) < len(addresses):
        raise UnsupportedError("addresses: one is given twice")
    if 0 < len(addresses) < replicas:
        raise UnsupportedError(
            f"addresses: {len(addresses)} of them, for replicas = {replicas} servers of each model"
        )
    if folder is not None and not Path(folder).is_absolute():
        raise UnsupportedError(
            f"folder = {folder!r}: must begin with /, because servers have folders of their own"
        )
    return Serving(replicas, tuple(addresses), folder, start_s, request_s, restarts)


def _check_address(address: str) -> None:
    try:
        parts = urlsplit(address)
        whole = parts.scheme == "http" and bool(parts.hostname) and parts.port is not None
    except ValueError:
        whole = False
    if not whole or parts.path.strip("/") or parts.query or parts.username:
        raise UnsupportedError(f"addresses: {address!r} must have the form http://HOST:PORT")
