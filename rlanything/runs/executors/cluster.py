"""The connection to Ray: what is checked before any work, and how it begins and ends."""

from __future__ import annotations

import math
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from typing import Any

from rlanything.config import ExecutorConfig
from rlanything.core.errors import ConfigError

INSTALL = "pip install 'rlanything[ray]' (in a checkout: pip install -e '.[ray]')"
CONNECT_S = 5.0
"""Longest wait for the address of a cluster to accept a connection."""
STORE = 128 << 20
"""Bytes of the object store of a Ray that is started for a run: answers are small."""


def check(settings: ExecutorConfig) -> None:
    """Raise `ConfigError` where Ray is not installed, or nothing listens at `executor.address`. Nothing is started."""
    if settings.form != "ray":
        return
    if find_spec("ray") is None:
        raise ConfigError(
            f"executor.form = 'ray': Ray is not installed: {INSTALL}; or use executor=processes"
        )
    if settings.address is None:
        return
    host, _, port = settings.address.rpartition(":")
    try:
        socket.create_connection((host.strip("[]"), int(port)), CONNECT_S).close()
    except (OSError, UnicodeError) as error:  # the second for a name that no machine can have
        raise ConfigError(
            f"executor.address = {settings.address!r}: no connection ({error}). It must be the address of a running "
            "cluster's head, as `ray start --head` prints it, and this process must run on a node of the cluster; null "
            "starts a Ray of its own"
        ) from None


@contextmanager
def connected(settings: ExecutorConfig) -> Iterator[Any]:
    """The module `ray`, connected to the cluster at `executor.address`, or to one that is started for the block.

    Raises `ConfigError` where that fails. A connection that this process has already is used, and left open.
    """
    check(settings)
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    import ray

    if ray.is_initialized():
        yield ray
        return
    options: dict[str, Any] = {"address": settings.address}
    if settings.address is None:
        options = {
            "address": "local",
            "num_cpus": math.ceil(settings.workers * settings.cpus),
            "include_dashboard": False,
            "object_store_memory": STORE,
        }
    try:
        ray.init(**options, log_to_driver=False, configure_logging=False)
    except Exception as error:  # Ray has an error of its own for each way to fail, and none in common
        raise ConfigError(
            f"executor.address = {settings.address!r}: Ray does not start or connect: {error}"
        ) from None
    try:
        yield ray
    finally:
        ray.shutdown()
