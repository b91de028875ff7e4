"""Lines to and from a command, each within a time limit. The command gets no shell, and ends when its input ends."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import threading
import time
from collections.abc import Iterable, Sequence
from typing import IO

import psutil

from envs.desktop.bridge.answers import LONGEST_LINE, WorldEnded, WorldError, WorldTimeout
from rlanything.core.errors import MachineError
from rlanything.core.printable import one_line

CHUNK = 2**20
LAST_WORDS = 600
"""Bytes of what a command wrote to standard error that are kept, and that an error quotes."""
ENDING = 0.5
"""Seconds that an error waits for the rest of what a command writes."""


class Lines:
    """A running command. Raises `MachineError` where it cannot be started."""

    def __init__(self, command: Sequence[str]) -> None:
        try:
            self._process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True,
            )  # fmt: skip
        except OSError as error:
            raise MachineError(f"{command[0]!r} cannot be started: {error.strerror}") from None
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        assert self._process.stderr is not None
        self._errors = _Tail(self._process.stderr)
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
            raise WorldEnded(f"the world is gone ({error.strerror}){self.last_words()}") from None

    def close(self, patience: float) -> None:
        """End the command: its input ends, and after `patience` seconds it is killed. So is all that it started."""
        started = _started([self._process.pid])  # once it has ended, nobody knows whose they were
        with contextlib.suppress(OSError):
            assert self._process.stdin is not None
            self._process.stdin.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(patience)
        started |= _started(
            [self._process.pid, *(process.pid for process in started if process.is_running())]
        )
        with contextlib.suppress(OSError):  # also what it left behind
            os.killpg(self._process.pid, signal.SIGKILL)
        for process in started:
            with contextlib.suppress(psutil.Error):
                process.kill()
        self._process.wait()
        assert self._process.stdout is not None
        self._process.stdout.close()

    def last_words(self) -> str:
        """The end of what the command wrote to standard error, for a message."""
        text = one_line(self._errors.read().decode("utf-8", "replace"))
        return f"; it wrote: {text}" if text else ""

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
                    raise WorldEnded(f"the world ended{self.last_words()}")
                self._read += data
        line = bytes(self._read[:end])
        del self._read[: end + 1]
        if self._read:  # an answer that nobody asked for: what follows would be taken for the next one
            raise WorldError(
                f"the world says more than it was asked: {one_line(repr(bytes(self._read[:80])))}"
            )
        return line


class _Tail:
    """Reads a stream as long as anything is written to it, and keeps the end. A command never waits to be read."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream, self._kept = stream, b""
        self._thread = threading.Thread(target=self._follow, daemon=True)
        self._thread.start()

    def read(self) -> bytes:
        """The last bytes. A stream whose writers are ending gets a moment to end."""
        self._thread.join(ENDING)
        return self._kept

    def _follow(self) -> None:
        with self._stream:
            while data := os.read(self._stream.fileno(), CHUNK):
                self._kept = (self._kept + data)[-LAST_WORDS:]


def _started(numbers: Iterable[int]) -> set[psutil.Process]:
    """What these processes have started and what that has started, as far as it runs."""
    found = set[psutil.Process]()
    for number in numbers:
        with contextlib.suppress(psutil.Error):
            found.update(psutil.Process(number).children(recursive=True))
    return found


def _wait(reading: list[int], writing: list[int], until: float) -> None:
    left = until - time.monotonic()
    ready = select.poll()
    for number in reading:
        ready.register(number, select.POLLIN | select.POLLHUP)
    for number in writing:
        ready.register(number, select.POLLOUT)
    if left <= 0 or not ready.poll(left * 1000):
        raise TimeoutError
