"""Private tests as LiveCodeBench and LiveBench store them: base64 of zlib of a pickle of one text.

Unpickling can run any code. This reader does not unpickle: it reads the opcodes and accepts only those that put one
text on the stack.
"""

from __future__ import annotations

import base64
import binascii
import pickle
import pickletools
import zlib

MOST_BYTES = 256 * 2**20
"""Largest text that is unpacked. A small blob can unpack to terabytes."""
_TEXTS = frozenset({"SHORT_BINUNICODE", "BINUNICODE", "BINUNICODE8", "UNICODE"})
_FRAMING = frozenset({"PROTO", "FRAME", "MEMOIZE", "PUT", "BINPUT", "LONG_BINPUT"})


def unpack(blob: str, most_bytes: int = MOST_BYTES) -> str:
    """The text in a blob. Nothing in it is run. Raises `ValueError`, saying what is wrong."""
    try:
        packed = base64.b64decode(blob, validate=True)
    except (binascii.Error, ValueError) as error:
        raise ValueError(f"not base64: {error}") from None
    stream = zlib.decompressobj()
    try:
        data = stream.decompress(packed, most_bytes)
    except zlib.error as error:
        raise ValueError(f"not zlib: {error}") from None
    if stream.unconsumed_tail:
        raise ValueError(f"it unpacks to more than {most_bytes} bytes")
    if not stream.eof or stream.unused_data:
        raise ValueError("the zlib stream is cut off, or something follows it")
    return _pickled_text(data)


def pack(text: str) -> str:
    """The blob that holds a text."""
    return base64.b64encode(zlib.compress(pickle.dumps(text))).decode("ascii")


def _pickled_text(data: bytes) -> str:
    found: list[str] = []
    stop = -1
    try:
        for opcode, argument, position in pickletools.genops(data):
            if opcode.name in _TEXTS:
                found.append(str(argument))
            elif opcode.name == "STOP":
                stop = position or 0
            elif opcode.name not in _FRAMING:
                raise ValueError(f"its pickle holds {opcode.name}, and only one text is read from a pickle")
    except (ValueError, UnicodeError, IndexError, OverflowError) as error:
        raise ValueError(f"not a pickle of a text: {error}") from None
    if len(found) != 1 or stop != len(data) - 1:
        raise ValueError(f"its pickle holds {len(found)} texts, or more after its end; one text is read")
    return found[0]
