"""The back end `subprocess`: resource limits without isolation. For programs that you would run yourself."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Mapping
from typing import Any

from envs.coding.sandbox.backends.box import ENVIRONMENT, Box, python_command
from envs.coding.sandbox.backends.process_box import ProcessBox
from envs.coding.sandbox.types import SandboxError


class Unsandboxed:
    """Watchers that are ordinary processes. Programs can read and write what this process can.

    `processes`, `files` and `disk_mb` are not limited: the kernel counts all processes of the user, and the work
    folder is an ordinary one.
    """

    sealed = False

    def __init__(self, trusted: bool) -> None:
        if not trusted:
            raise SandboxError(
                "the back end 'subprocess' is no sandbox: programs run with your rights. "
                "Give trusted=True if you would run them yourself, or use 'bwrap' or 'docker'"
            )
        if sys.platform != "linux":
            raise SandboxError("the back end 'subprocess' needs Linux; use 'docker' here")

    def start(self) -> tuple[Box, Mapping[str, Any]]:
        """See `Backend`."""
        folder = tempfile.TemporaryDirectory(prefix="sandbox-")
        settings = {"uid": None, "filter": "", "folder": folder.name, "count_processes": False}
        words = [f"{key}={value}" for key, value in ENVIRONMENT.items()]
        return ProcessBox(
            ["/usr/bin/env", "-i", *words, *python_command(sys.executable)], folder.cleanup
        ), settings

    def close(self) -> None:
        """Nothing is shared."""
