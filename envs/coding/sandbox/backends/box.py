"""The protocols of a back end and of a box, and the command that runs the watcher in a box."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

from envs.coding.sandbox.inside import flow, fork, link, meter, runqueue, seal, serve, watch, wipe

INSIDE = (link, seal, runqueue, meter, fork, flow, watch, wipe, serve)
"""The modules of the watcher. Each imports only earlier ones, and the standard library of Python 3.11 or newer."""

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
    # Each further arena would take 64 MB of a program's address space for a thread.
    "MALLOC_ARENA_MAX": "1",
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
}
"""The whole environment of a program. The fixed hash seed gives sets the same order every time."""


def python_command(python: str) -> list[str]:
    """A command that runs the watcher with `python` (3.11 or newer), without any file of this package."""
    sources = [(module.__name__, Path(str(module.__file__)).read_text()) for module in INSIDE]
    return [python, "-s", "-P", "-B", "-X", "utf8", "-c", LOADER, json.dumps(sources)]


class Box(Protocol):
    """A running box."""

    def ends(self) -> tuple[int, int]:
        """Descriptors to wait on before `receive` and before `send`; the same one twice for a socket."""
        ...

    def receive(self) -> bytes:
        """The bytes that have arrived; b'' when the box is gone."""
        ...

    def send(self, data: memoryview) -> int:
        """Write without blocking; the number of bytes written. Raises OSError when the box is gone."""
        ...

    def close(self) -> str:
        """End the box with all that runs in it; the end of what it wrote to standard error."""
        ...


class Backend(Protocol):
    """A kind of box."""

    sealed: bool
    """Is the watcher process 1 of its own namespace?"""

    def start(self) -> tuple[Box, Mapping[str, Any]]:
        """A new box, and the settings to send to it first. Raises `SandboxError`."""
        ...

    def close(self) -> None:
        """Release what all boxes share."""
        ...
