"""Pictures that an agent sees: PNG bytes with their hash and size, checked without being decoded.

A picture is named by the sha256 of its bytes. Records hold names; the bytes lie in a store (`files.images`). A PNG is
checked chunk by chunk, so that a cut or changed one is found where it is made or read, and not in a model's forward
pass. Nothing is unpacked: a few bytes of a PNG can stand for gigabytes, and the header says how many.
"""

from __future__ import annotations

import hashlib
import re
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field

MOST_BYTES = 16 << 20
"""The largest file of a picture, in bytes."""
MOST_SIDE = 8192
"""The most pixels in a row or a column."""
MOST_PIXELS = 1 << 24
"""The most pixels of a picture: 4096 x 4096."""
MOST_CHUNKS = 1 << 14
"""The most chunks of a PNG: 1 KiB each, in the largest file. Programs write chunks of 8 KiB or more."""
NAME = re.compile(r"[0-9a-f]{64}")
"""The name of a picture: sha256 of its bytes."""

_SIGNATURE = b"\x89PNG\r\n\x1a\n"
_DEPTHS = {0: (1, 2, 4, 8, 16), 2: (8, 16), 3: (1, 2, 4, 8), 4: (8, 16), 6: (8, 16)}
"""Kinds of colour of the PNG specification (grey, RGB, palette, grey and alpha, RGB and alpha) -> bits of a sample."""


@dataclass(frozen=True, slots=True)
class Image:
    """A picture. png: the bytes of a PNG file. The rest is read from them.

    sha256: its name, 64 hex digits. width, height: in pixels. Raises `ValueError`, saying what is wrong, for bytes that
    are no whole PNG, and for a picture beyond `MOST_BYTES`, `MOST_CHUNKS`, `MOST_SIDE` or `MOST_PIXELS`.
    """

    png: bytes = field(repr=False)
    sha256: str = field(init=False)
    width: int = field(init=False)
    height: int = field(init=False)

    def __post_init__(self) -> None:
        width, height = size_of(self.png)
        object.__setattr__(self, "sha256", hashlib.sha256(self.png).hexdigest())
        object.__setattr__(self, "width", width)
        object.__setattr__(self, "height", height)


def size_of(png: bytes) -> tuple[int, int]:
    """(width, height) of a PNG, whose chunks are all there. Raises `ValueError` like `Image`."""
    if len(png) > MOST_BYTES:
        raise ValueError(f"a picture of {len(png):,} bytes; at most {MOST_BYTES:,} are read")
    if not png.startswith(_SIGNATURE):
        raise ValueError("no PNG: it does not begin as one")
    chunks = list(_chunks(png))
    kinds = [kind for kind, _ in chunks]
    if not chunks or kinds[0] != b"IHDR" or len(chunks[0][1]) != 13:
        raise ValueError("no PNG: its first chunk is no header of 13 bytes")
    if kinds[-1] != b"IEND" or kinds.count(b"IEND") != 1 or b"IDAT" not in kinds:
        raise ValueError("a PNG that is cut off: its pixels or its end are missing")
    return _header(chunks[0][1])


def _header(header: bytes) -> tuple[int, int]:
    width, height = int.from_bytes(header[:4]), int.from_bytes(header[4:8])
    depth, colour, compression, filtering, interlacing = header[8:]
    if depth not in _DEPTHS.get(colour, ()) or compression or filtering or interlacing > 1:
        raise ValueError(f"no PNG that can be read: its header says {header[8:].hex(' ')}")
    if not (0 < width <= MOST_SIDE and 0 < height <= MOST_SIDE) or width * height > MOST_PIXELS:
        raise ValueError(
            f"a picture of {width} x {height} pixels; each side must be from 1 to {MOST_SIDE}, and all pixels at most "
            f"{MOST_PIXELS:,}"
        )
    return width, height


def _chunks(png: bytes) -> Iterator[tuple[bytes, bytes]]:
    """(kind, content) of each chunk. Raises `ValueError` where one is cut off or does not fit its checksum.

    Also for more than `MOST_CHUNKS`: an empty one takes nine times its bytes in memory.
    """
    at, count = len(_SIGNATURE), 0
    while at < len(png):
        count += 1
        if count > MOST_CHUNKS:
            raise ValueError(f"a PNG of more than {MOST_CHUNKS:,} chunks; so many are not read")
        end = at + 12 + int.from_bytes(png[at : at + 4])
        if end > len(png):
            raise ValueError("a PNG that is cut off: a chunk is longer than what is there")
        kind, content = png[at + 4 : at + 8], png[at + 8 : end - 4]
        if zlib.crc32(png[at + 4 : end - 4]) != int.from_bytes(png[end - 4 : end]):
            raise ValueError(f"a damaged PNG: its chunk {kind!r} does not fit its checksum")
        yield kind, content
        at = end
