"""How a box is started and spoken to: the command that runs the watcher, and a box as a stream of bytes."""

from __future__ import annotations

import json
from collections.abc import Mapping
from importlib.resources import files
from typing import Any, Protocol

INSIDE = "envs.coding.sandbox.inside"
MODULES = ("link", "seal", "runqueue", "meter", "fork", "watch", "wipe", "serve")
"""In an order in which each imports only earlier ones."""

LOADER = """\
import json, sys, types
for name, source in json.loads(sys.argv.pop()):
    module = sys.modules[name] = types.ModuleType(name)
    exec(compile(source, name, "exec"), module.__dict__)
module.serve()
"""

ENVIRONMENT = {
    "PATH": "/usr/bin:/bin",
    "HOME": "/tmp",
    "LANG": "C.UTF-8",
    "PYTHONHASHSEED": "0",
    # One arena: every further one would take 64 MB of a program's address space for a thread.
    "MALLOC_ARENA_MAX": "1",
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
}
"""All that a program finds in its environment. The fixed hash seed gives a program the same sets every time."""


def python_command(python: str) -> list[str]:
    """A command that runs the watcher with `python` (3.11 or newer), without any file of this package."""
    sources = [(f"{INSIDE}.{name}", files(INSIDE).joinpath(f"{name}.py").read_text()) for name in MODULES]
    return [python, "-s", "-P", "-B", "-X", "utf8", "-c", LOADER, json.dumps(sources)]


class Box(Protocol):
    """A running box."""

    def ends(self) -> tuple[int, int]:
        """Descriptors to wait on before `receive` and before `send`; the same one twice for a socket."""
        ...

    def receive(self) -> bytes:
        """What has arrived; b'' when the box is gone."""
        ...

    def send(self, data: bytes) -> int:
        """Write what fits without waiting; how many bytes that was. Raises OSError when the box is gone."""
        ...

    def close(self) -> str:
        """End the box with all that runs in it; its last words, if any."""
        ...


class Backend(Protocol):
    """A kind of box."""

    sealed: bool
    """Is the watcher process 1 of its own namespace?"""

    def start(self) -> tuple[Box, Mapping[str, Any]]:
        """A fresh box, and the settings to send it first. Raises `SandboxError`."""
        ...

    def close(self) -> None:
        """Release what all boxes share."""
        ...
