"""The back end `subprocess`: limits on resources and nothing else. For programs that you would run yourself."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Mapping
from typing import Any

from envs.coding.sandbox.launch import ENVIRONMENT, Box, python_command
from envs.coding.sandbox.process import ProcessBox
from envs.coding.sandbox.types import SandboxError


class Trusted:
    """Watchers that are ordinary processes. Programs can read and write what this process can.

    `processes`, `files` and `disk_mb` are not limited: the kernel counts processes per user, over everything that the
    user runs, and the work folder is an ordinary one.
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
