"""A box that is a process of this machine: a command, two pipes, and its standard error."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import tempfile
from collections.abc import Callable, Sequence

from envs.coding.sandbox.types import SandboxError

LAST_WORDS = 2000
READ = 1 << 20
CLOSE_S = 2.0


class ProcessBox:
    """A command whose standard input and output are the link. It must end when this process ends."""

    def __init__(self, command: Sequence[str], cleanup: Callable[[], None] | None = None) -> None:
        self._cleanup = cleanup
        try:
            self._errors = tempfile.TemporaryFile()  # noqa: SIM115 - closed by close
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
            if cleanup is not None:
                cleanup()
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

    def send(self, data: memoryview) -> int:
        """See `Box`."""
        try:
            return os.write(self._writer, data)
        except BlockingIOError:
            return 0

    def close(self) -> str:
        """See `Box`. When its input is closed, the watcher kills what it runs and ends; a stuck one is killed."""
        try:
            self._end()
            with self._errors as file:
                file.seek(0)
                return file.read(LAST_WORDS).decode("utf-8", "replace").strip()
        finally:
            if self._cleanup is not None:
                self._cleanup()

    def _end(self) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.stdout.close()
        try:
            self._process.wait(CLOSE_S)
        except subprocess.TimeoutExpired:
            self._kill()

    def _kill(self) -> None:
        """Kill the watcher first: killing bubblewrap does not always kill it, as it may have another user id."""
        pid = self._process.pid
        with open(f"/proc/{pid}/task/{pid}/children") as file:
            for child in map(int, file.read().split()):
                with contextlib.suppress(ProcessLookupError):  # it ends just now
                    os.kill(child, signal.SIGKILL)
        self._process.kill()
        self._process.wait()
