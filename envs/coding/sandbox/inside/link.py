"""The link to the harness: frames of numbers, and chunks of bytes that pass this process by.

To the watcher: a length and JSON, then the bytes of the test. From the watcher: a kind, a length and that many bytes,
where kind 0 is JSON and the others are the descriptors 1, 2 and 3 of a test.
"""

import json
import os
from typing import Any

NUMBERS = 0
"""The kind of a frame that is JSON."""


class GoneError(Exception):
    """The harness closed the link, or ended."""


class Link:
    """The watcher's side, on descriptors that forks close; standard input and output become /dev/null."""

    def __init__(self) -> None:
        self.reader, self.writer = os.dup(0), os.dup(1)
        self.null = os.open("/dev/null", os.O_RDWR)
        os.dup2(self.null, 0)
        os.dup2(self.null, 1)
        self.stage = os.pipe()
        """A pipe of its own, where a chunk waits whose length has to be told first."""

    def read(self) -> dict[str, Any]:
        """The next frame. Raises `GoneError`."""
        frame: dict[str, Any] = json.loads(self._take(int.from_bytes(self._take(4), "little")))
        return frame

    def write(self, frame: dict[str, Any]) -> None:
        """Send a frame. Raises `GoneError`."""
        text = json.dumps(frame).encode()
        self.announce(NUMBERS, len(text), text)

    def announce(self, kind: int, size: int, body: bytes = b"") -> None:
        """Send a kind and a length, and the bytes if they are known here. Raises `GoneError`."""
        data = bytes([kind]) + size.to_bytes(4, "little") + body
        try:
            while data:
                data = data[os.write(self.writer, data) :]
        except BrokenPipeError:
            raise GoneError from None

    def _take(self, size: int) -> bytes:
        parts = bytearray()
        while len(parts) < size:
            part = os.read(self.reader, size - len(parts))
            if not part:
                raise GoneError
            parts += part
        return bytes(parts)
