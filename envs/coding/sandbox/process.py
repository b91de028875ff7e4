"""Boxes that are processes of this machine: the command that makes one, two pipes, and its last words."""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Callable, Sequence

from envs.coding.sandbox.types import SandboxError

LAST_WORDS = 2000
READ = 1 << 20


class ProcessBox:
    """A command whose standard input and output are the link. It must die with this process."""

    def __init__(self, command: Sequence[str], cleanup: Callable[[], None] | None = None) -> None:
        self._cleanup = cleanup
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 - closed by close
        try:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._errors,
                bufsize=0,
                env={},
                cwd="/",
                start_new_session=True,
            )
        except OSError as error:
            raise SandboxError(f"{command[0]} cannot be started: {error}") from error
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._writer, self._reader = self._process.stdin.fileno(), self._process.stdout.fileno()
        os.set_blocking(self._writer, False)
        os.set_blocking(self._reader, False)

    def ends(self) -> tuple[int, int]:
        """See `Box`."""
        return self._reader, self._writer

    def receive(self) -> bytes:
        """See `Box`."""
        return os.read(self._reader, READ)

    def send(self, data: bytes) -> int:
        """See `Box`."""
        try:
            return os.write(self._writer, data)
        except BlockingIOError:
            return 0

    def close(self) -> str:
        """See `Box`."""
        self._process.kill()
        # Also closes the pipes.
        with self._process:
            pass
        with self._errors as file:
            file.seek(0)
            words = file.read(LAST_WORDS).decode("utf-8", "replace").strip()
        if self._cleanup is not None:
            self._cleanup()
        return words
