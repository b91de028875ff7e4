"""Lines to and from a command, each within a time limit. The command gets no shell, and ends when its input ends."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from typing import IO

import psutil

from envs.desktop.bridge.answers import LONGEST_LINE, WorldError, WorldTimeout
from rlanything.core.errors import MachineError
from rlanything.core.printable import one_line

CHUNK = 2**20
LAST_WORDS = 600
"""Bytes of what a command wrote to standard error that an error quotes."""


class Lines:
    """A running command. Raises `MachineError` where it cannot be started."""

    def __init__(self, command: Sequence[str], environment: Mapping[str, str] | None = None) -> None:
        self._errors: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 - closed by `close`
        try:
            self._process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._errors, start_new_session=True,
                env=None if environment is None else dict(environment),
            )  # fmt: skip
        except OSError as error:
            self._errors.close()
            raise MachineError(f"{command[0]!r} cannot be started: {error.strerror}") from None
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._to, self._from = self._process.stdin.fileno(), self._process.stdout.fileno()
        os.set_blocking(self._to, False)
        os.set_blocking(self._from, False)
        self._read = bytearray()

    def ask(self, line: bytes, limit: float) -> bytes:
        """Send a line and receive one, both within `limit` seconds. Raises `WorldError` and `WorldTimeout`."""
        until = time.monotonic() + limit
        try:
            self._send(line + b"\n", until)
            return self._receive(until)
        except TimeoutError:
            raise WorldTimeout(f"the world did not answer within {limit:g} s{self.last_words()}") from None
        except OSError as error:
            raise WorldError(f"the world is gone ({error.strerror}){self.last_words()}") from None

    def close(self, patience: float) -> None:
        """End the command: its input ends, and after `patience` seconds it is killed with all that it started."""
        with contextlib.suppress(OSError):
            assert self._process.stdin is not None
            self._process.stdin.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(patience)
        left = _started(self._process.pid)
        with contextlib.suppress(OSError):  # also what it left behind
            os.killpg(self._process.pid, signal.SIGKILL)
        for process in left:
            with contextlib.suppress(psutil.Error):
                process.kill()
        self._process.wait()
        assert self._process.stdout is not None
        self._process.stdout.close()
        self._errors.close()

    def last_words(self) -> str:
        """The end of what the command wrote to standard error, for a message."""
        with contextlib.suppress(OSError, ValueError):
            size = self._errors.seek(0, os.SEEK_END)
            self._errors.seek(max(0, size - LAST_WORDS))
            text = one_line(self._errors.read().decode("utf-8", "replace"))
            return f"; it wrote: {text}" if text else ""
        return ""

    def _send(self, data: bytes, until: float) -> None:
        left = memoryview(data)
        while left:
            _wait([], [self._to], until)
            with contextlib.suppress(BlockingIOError):
                left = left[os.write(self._to, left) :]

    def _receive(self, until: float) -> bytes:
        searched = 0
        while (end := self._read.find(b"\n", searched)) < 0:
            if len(self._read) > LONGEST_LINE:
                raise WorldError(f"the world's answer has more than {LONGEST_LINE} bytes")
            searched = len(self._read)
            _wait([self._from], [], until)
            with contextlib.suppress(BlockingIOError):
                data = os.read(self._from, CHUNK)
                if not data:
                    raise WorldError(f"the world ended{self.last_words()}")
                self._read += data
        line = bytes(self._read[:end])
        del self._read[: end + 1]
        if self._read:  # an answer that nobody asked for: what follows would be taken for the next one
            raise WorldError(
                f"the world says more than it was asked: {one_line(repr(bytes(self._read[:80])))}"
            )
        return line


def _started(number: int) -> list[psutil.Process]:
    """What a command has started and what that has started, as far as it runs."""
    try:
        return psutil.Process(number).children(recursive=True)
    except psutil.Error:
        return []


def _wait(reading: list[int], writing: list[int], until: float) -> None:
    left = until - time.monotonic()
    ready = select.poll()
    for number in reading:
        ready.register(number, select.POLLIN | select.POLLHUP)
    for number in writing:
        ready.register(number, select.POLLOUT)
    if left <= 0 or not ready.poll(left * 1000):
        raise TimeoutError
