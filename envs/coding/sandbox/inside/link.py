"""Length-prefixed JSON frames between the harness and the watcher."""

import json
import os
from typing import Any


class GoneError(Exception):
    """The harness closed the link, or ended."""


class Link:
    """The watcher's side, on descriptors that forks close; standard input and output become /dev/null."""

    def __init__(self) -> None:
        self.reader, self.writer = os.dup(0), os.dup(1)
        null = os.open("/dev/null", os.O_RDWR)
        os.dup2(null, 0)
        os.dup2(null, 1)
        os.close(null)

    def read(self) -> dict[str, Any]:
        """The next frame. Raises `GoneError`."""
        frame: dict[str, Any] = json.loads(self._take(int.from_bytes(self._take(4), "little")))
        return frame

    def write(self, frame: dict[str, Any]) -> None:
        """Send a frame. Raises `GoneError`."""
        text = json.dumps(frame).encode()
        data = len(text).to_bytes(4, "little") + text
        try:
            while data:
                data = data[os.write(self.writer, data) :]
        except BrokenPipeError:
            raise GoneError from None

    def _take(self, size: int) -> bytes:
        parts = bytearray()
        while len(parts) < size:
            part = os.read(self.reader, min(size - len(parts), 1 << 20))
            if not part:
                raise GoneError
            parts += part
        return bytes(parts)
