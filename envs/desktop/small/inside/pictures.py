"""The screen as PNG, from the frame buffer that Xvfb keeps in a file (XWD). Part of the program in the box."""

from __future__ import annotations

import hashlib
import struct
import zlib
from pathlib import Path

COLOURS = 12
"""Bytes of one entry of the colour map."""


def png(frame: Path) -> bytes:
    """The screen as RGB."""
    width, height, line, data = _read(frame)
    rows = bytearray(height * (1 + 3 * width))
    for row in range(height):
        source = data[row * line : row * line + 4 * width]  # blue, green, red, unused
        start = row * (1 + 3 * width) + 1
        for channel in range(3):
            rows[start + channel : start + 3 * width : 3] = source[2 - channel :: 4]
    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    packed = zlib.compress(bytes(rows), 1)
    return b"\x89PNG\r\n\x1a\n" + _chunk(b"IHDR", head) + _chunk(b"IDAT", packed) + _chunk(b"IEND", b"")


def digest(frame: Path) -> bytes:
    """A hash of what the screen shows."""
    return hashlib.blake2b(_read(frame)[3]).digest()


def _read(frame: Path) -> tuple[int, int, int, bytes]:
    """(width, height, bytes of a line, pixels)."""
    raw = frame.read_bytes()
    head = struct.unpack(">25I", raw[:100])
    size, width, height, bits, line, colours = head[0], head[4], head[5], head[11], head[12], head[19]
    if bits != 32:
        raise ValueError(f"the screen has {bits} bits for a pixel")
    start = size + COLOURS * colours
    return width, height, line, raw[start : start + line * height]


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
