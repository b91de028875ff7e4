"""PNGs that are made on the spot, chunk by chunk, so that a test can also make wrong ones."""

from __future__ import annotations

import struct
import zlib

SIGNATURE = b"\x89PNG\r\n\x1a\n"


def chunk(kind: bytes, content: bytes) -> bytes:
    return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))


def header(width: int, height: int, *, depth: int = 8, colour: int = 2) -> bytes:
    return chunk(b"IHDR", struct.pack(">II", width, height) + bytes([depth, colour, 0, 0, 0]))


def png(width: int = 4, height: int = 3, shade: int = 0) -> bytes:
    """A picture whose pixels follow from its size and `shade`, in RGB."""
    rows = b"".join(
        b"\0" + bytes((x * 7 + y * 13 + shade * 31 + c * 50) % 256 for x in range(width) for c in range(3))
        for y in range(height)
    )
    return SIGNATURE + header(width, height) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


def damaged() -> dict[str, tuple[bytes, str]]:
    """What is wrong -> (bytes, the words of the error)."""
    good = png()
    flipped = bytearray(good)
    flipped[-20] ^= 1
    end = chunk(b"IEND", b"")
    pixels = chunk(b"IDAT", zlib.compress(b"\0"))
    return {
        "empty": (b"", "no PNG: it does not begin as one"),
        "jpeg": (b"\xff\xd8\xff\xe0" + bytes(64), "no PNG: it does not begin as one"),
        "signature alone": (SIGNATURE, "first chunk is no header"),
        "cut in a chunk": (good[:-6], "cut off: a chunk is longer"),
        "cut between chunks": (good[: -len(end)], "cut off: its pixels or its end are missing"),
        "no pixels": (SIGNATURE + header(4, 3) + end, "cut off: its pixels or its end are missing"),
        "a flipped bit": (bytes(flipped), "does not fit its checksum"),
        "something after the end": (good + pixels, "cut off: its pixels or its end are missing"),
        "no such colour": (SIGNATURE + header(4, 3, colour=5) + pixels + end, "no PNG that can be read"),
        "no such depth": (SIGNATURE + header(4, 3, depth=4) + pixels + end, "no PNG that can be read"),
        "no pixels in a row": (SIGNATURE + header(0, 3) + pixels + end, "0 x 3 pixels"),
        "too wide": (SIGNATURE + header(8193, 1) + pixels + end, "8193 x 1 pixels"),
        "too many pixels": (SIGNATURE + header(8192, 8192) + pixels + end, "at most 16,777,216"),
        "too many chunks": (
            good[: -len(end)] + chunk(b"teXt", b"") * ((1 << 14) - 2) + end,
            "more than 16,384 chunks",
        ),
        "too many bytes": (good + bytes((16 << 20) - len(good) + 1), "at most 16,777,216 are read"),
    }
