"""Servers that Ray places: an actor on any node of a cluster starts one there, and ends it.

Ray says where a server runs and whether its node lives. Requests and weights do not go through Ray: HTTP carries the
requests, and the weights lie in a folder that all nodes see.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from rlanything.core.errors import UserError
from rlanything.core.printable import one_line
from rlanything.engines.vllm.instance import Settings
from rlanything.engines.vllm.served import below, process, remover
from rlanything.engines.vllm.served.process import Process
from rlanything.engines.vllm.served.settings import SCHEME
from rlanything.engines.vllm.served.store import PREFIX, short
from rlanything.engines.vllm.served.wire import LostError

ANSWER_S = 30.0
"""Longest time that an actor may take to say how its server is, seconds. It takes a moment, unless its node is gone."""
MOST = 1000
"""How many characters of Ray's words are shown."""


class Keeper:
    """What runs in the actor, on the node of the server."""

    def __init__(self) -> None:
        self._process: Process | None = None

    def start(
        self,
        program: Sequence[str],
        model: Path,
        settings: Settings,
        variables: dict[str, str],
        lora: bool,
    ) -> str:
        """Start a server at a free port of this node, and return its address.

        variables: of the process that asks, which vLLM reads. lora: see `process.environment`.
        """
        import ray

        folder = Path(tempfile.mkdtemp(prefix=PREFIX, dir=short()))
        command = [sys.executable, "-m", below.__name__, remover.__name__, str(folder)]
        self._remover = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        host = ray.util.get_node_ip_address()
        with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as free:
            free.bind((host, 0))
            port = free.getsockname()[1]
        os.environ.update(variables)
        environment = process.environment(
            settings.device, folder, lora=lora, invariant=settings.batch_invariant
        )
        arguments = process.arguments(model, (host, port), settings)
        self._process = Process([sys.executable, *program], arguments, environment, folder, of_ray=True)
        return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"

    def ask(self, name: str) -> Any:
        """What the server's process says: `ended`, or what a method of it returns."""
        assert self._process is not None
        found = getattr(self._process, name)
        return found() if callable(found) else found


class Placed:
    """A server on some node, with what `process.Process` has. `gone`: whether its actor or its node is lost.

    Args:
        address: of the cluster, HOST:PORT. A connection that this process has already is used.
        device: of the model. On GPUs a server gets one for itself.
        start: starts it, given the actor; returns Ray's reference to its address.
        start_s: the longest time in which a node must have room, seconds.

    Raises `UserError` where Ray is missing or the cluster does not answer.
    """

    def __init__(self, address: str, device: str, start: Callable[[Any], Any], start_s: float) -> None:
        self._ray = _connected(address)
        self._needs = {"num_cpus": 1, "num_gpus": int(device == "cuda")}
        placed = {**self._needs, "max_restarts": 0, "max_task_retries": 0, "scheduling_strategy": "SPREAD"}
        self._actor = self._ray.remote(Keeper).options(**placed).remote()
        self.gone, self._words, self._address = False, "", ""
        self._start_s, self._end = start_s, time.monotonic() + start_s
        self._told = start(self._actor)

    def where(self) -> str:
        """The address where it listens, or will listen; '' while it is not placed yet.

        Raises `LostError` where no node has had room for too long, or where it could not be placed.
        """
        if self._address:
            return self._address
        try:
            self._address = str(self._ray.get(self._told, timeout=0))
        except self._ray.exceptions.GetTimeoutError:
            if time.monotonic() > self._end:
                room = self._room(self._needs)
                raise LostError(
                    f"no node had room for a server within {self._start_s:g} s ({room})"
                ) from None
        except self._ray.exceptions.RayError as error:
            raise LostError(f"a server could not be placed: {_words(error)}") from None
        return self._address

    @property
    def ended(self) -> bool:
        """Whether the server has ended, or cannot be asked."""
        return bool(self._ask("ended", True))

    def stop(self) -> None:
        """Let it end by itself."""
        self._ask("stop", None)
        self.kill()

    def note_end(self) -> None:
        """Give the log a moment to say how the server ended."""
        self._ask("note_end", None)

    def kill(self) -> None:
        """End it and its actor now. The log is read first: it goes with the actor."""
        words = str(self._ask("last_words", ""))
        self._words = self._words or words
        self._ask("kill", None)
        with suppress(Exception):  # Ray may be ending
            if self._ray.is_initialized():  # or it has ended: then `kill` would start one
                self._ray.kill(self._actor, no_restart=True)

    def last_words(self) -> str:
        """The end of its log, or Ray's own words about the actor."""
        return self._words

    def _ask(self, name: str, otherwise: object) -> object:
        if self.gone or not self._address:  # an actor without a node would not answer
            return otherwise
        if not self._ray.is_initialized():  # it has ended, and a question would start one
            return otherwise
        try:
            return self._ray.get(self._actor.ask.remote(name), timeout=ANSWER_S)
        except Exception as error:  # Ray has ended, or the actor, or the node
            self.gone, self._words = True, f"    | Ray: {_words(error)}"
            return otherwise

    def _room(self, needs: dict[str, int]) -> str:
        asked = ", ".join(f"{count} {name.removeprefix('num_')}" for name, count in needs.items() if count)
        free = self._ray.available_resources()
        return f"it asks for {asked}; free in the cluster: {free.get('CPU', 0):g} cpus, {free.get('GPU', 0):g} gpus"


def _connected(address: str) -> Any:
    """The module `ray`, connected. The connection stays until this process ends, as other engines may use it."""
    try:
        import ray
    except ImportError:
        raise UserError(
            f"engine.addresses = {SCHEME}{address}: Ray is not installed: pip install 'rlanything[ray]'"
        ) from None
    if not ray.is_initialized():
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
        try:
            ray.init(address=address, log_to_driver=False, configure_logging=False)
        except Exception as error:  # Ray has an error of its own for each way to fail, and none in common
            raise UserError(
                f"engine.addresses = {SCHEME}{address}: no connection ({_words(error)}). It must be the address of a "
                "running cluster's head, and this process must run on a node of the cluster"
            ) from None
    return ray


def _words(error: Exception) -> str:
    return f"{type(error).__name__}: {one_line(str(error))[:MOST]}"
