"""A worker of the pool: its present box, and the session that the box works for."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from typing import Any

from envs.coding.sandbox.backends.box import Backend, Box
from envs.coding.sandbox.frames import Arrivals, BoxLostError
from envs.coding.sandbox.inside.meter import STARVED
from envs.coding.sandbox.judge import BadReportError
from envs.coding.sandbox.session import Session
from envs.coding.sandbox.types import SandboxError

START_S = 60.0
"""A box that has not greeted by then is replaced."""
GRACE_S = 30.0
"""Seconds that a watcher may take beyond its own limits before its box is replaced."""
STARTS = 3
"""Consecutive boxes that may fail to start."""


class Worker:
    """Sends a session's requests to a box, one at a time, and starts another box when one is lost."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self._box: Box | None = None
        self._arrived, self._leaving = Arrivals(), memoryview(b"")
        self._deadline, self._greeted, self._failures = 0.0, False, 0
        self.session: Session | None = None
        self.replaced = 0
        """Number of boxes that were lost."""

    @property
    def greeted(self) -> bool:
        """Whether the box has greeted."""
        return self._greeted

    @property
    def overdue(self) -> float:
        """When the box will be replaced, by `time.monotonic`."""
        return self._deadline

    def ends(self) -> tuple[int, int | None]:
        """The descriptor to read from, and the one to write to while something is left to send."""
        assert self._box is not None
        reader, writer = self._box.ends()
        return reader, writer if self._leaving else None

    def start(self) -> None:
        """Start a box; it is ready once `greeted`."""
        self._arrived = Arrivals()
        self._greeted = False
        self._box, settings = self._backend.start()
        self._deadline = time.monotonic() + START_S
        self._queue(settings)

    def take(self, session: Session) -> None:
        """Start to work for a session."""
        self.session = session
        if self._box is None:
            self.start()
        elif self._greeted:
            self._ask()

    def replace(self, reason: str) -> None:
        """End the box and start another. Raises `SandboxError` when boxes no longer start."""
        self.replaced += 1
        words = self.close()
        reason = f"{reason}: {words}" if words else reason
        if not self._greeted:
            self._failures += 1
            if self._failures >= STARTS:
                raise SandboxError(f"no box starts: {reason}")
        elif self.session is not None:
            self.session.lose(reason)
        self.start()

    def close(self) -> str:
        """End the box; the end of what it wrote to standard error."""
        box, self._box, self._leaving = self._box, None, memoryview(b"")
        return box.close() if box is not None else ""

    def write(self) -> None:
        """Send without blocking. Raises `BoxLostError`."""
        assert self._box is not None
        try:
            self._leaving = self._leaving[self._box.send(self._leaving) :]
        except OSError as error:
            raise BoxLostError("the box ended") from error

    def read(self) -> None:
        """Receive bytes, and handle each complete frame. Raises `BoxLostError`."""
        assert self._box is not None
        try:
            part = self._box.receive()
        except BlockingIOError:
            return
        except OSError as error:
            raise BoxLostError("the box ended") from error
        if not part:
            raise BoxLostError("the box ended")
        for frame in self._arrived.add(part):
            self._act(frame)

    def _act(self, frame: Mapping[str, Any]) -> None:
        if not self._greeted:
            self._greet(frame)
        elif self.session is None:
            raise BoxLostError("the box sent a frame without a request")
        else:
            try:
                usable = self.session.accept(frame)
            except BadReportError as error:
                raise BoxLostError(str(error)) from error
            if not usable:
                self.replaced += 1
                self.close()
                self.start()
                return
        self._ask()

    def _greet(self, frame: Mapping[str, Any]) -> None:
        """Check the greeting. Raises `SandboxError` for a box that does not isolate."""
        if self._backend.sealed and (frame.get("sealed") is not True or not frame.get("uid")):
            raise SandboxError(
                f"the box does not isolate: sealed {frame.get('sealed')!r}, user {frame.get('uid')!r}"
            )
        self._greeted, self._failures = True, 0

    def _ask(self) -> None:
        """Send the session's next request, or drop a session that is done."""
        if self.session is not None and self.session.done:
            self.session = None
        if self.session is not None:
            self._deadline = time.monotonic() + STARVED * self.session.limits.wall_s + GRACE_S
            self._queue(*self.session.request())

    def _queue(self, frame: Mapping[str, Any], payload: bytes = b"") -> None:
        text = json.dumps(frame).encode()
        self._leaving = memoryview(b"".join((self._leaving, len(text).to_bytes(4, "little"), text, payload)))
