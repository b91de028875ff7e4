"""What a box sends, read byte by byte: frames of numbers, and between them the outputs of the test that runs."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from envs.coding.sandbox.inside.link import NUMBERS
from rlanything.core.errors import EnvironmentFailure

HEADER = 5
"""Bytes before every piece: kind, length (little-endian)."""
LARGEST_PIECE = 1 << 20
LARGEST_OUTPUT = 1 << 28
STREAMS = {1: "out", 2: "err", 3: "result"}


class BoxLostError(EnvironmentFailure):
    """The box has ended or is broken."""


class Arrivals:
    """The bytes of a box so far."""

    def __init__(self) -> None:
        self._bytes = bytearray()
        self._outputs = {name: bytearray() for name in STREAMS.values()}

    def add(self, part: bytes) -> Iterator[dict[str, Any]]:
        """Each frame that is complete now, with the outputs `out`, `err` and `result` as bytes.

        Raises `BoxLostError` for what no watcher sends.
        """
        self._bytes += part
        while len(self._bytes) >= HEADER:
            kind, size = self._bytes[0], int.from_bytes(self._bytes[1:HEADER], "little")
            if size > LARGEST_PIECE or (kind != NUMBERS and kind not in STREAMS):
                raise BoxLostError("the box sent something that is no frame")
            if len(self._bytes) < HEADER + size:
                return
            body = bytes(memoryview(self._bytes)[HEADER : HEADER + size])
            del self._bytes[: HEADER + size]
            if kind == NUMBERS:
                yield self._frame(body)
            else:
                self._collect(self._outputs[STREAMS[kind]], body)

    def _frame(self, body: bytes) -> dict[str, Any]:
        try:
            frame = json.loads(body)
        except (ValueError, RecursionError):
            frame = None
        if not isinstance(frame, dict):
            raise BoxLostError("the box sent something that is no frame")
        outputs = {name: bytes(output) for name, output in self._outputs.items()}
        for output in self._outputs.values():
            output.clear()
        return {**frame, **outputs}

    @staticmethod
    def _collect(output: bytearray, body: bytes) -> None:
        output += body
        if len(output) > LARGEST_OUTPUT:
            raise BoxLostError("the box sent more than any limit allows")
