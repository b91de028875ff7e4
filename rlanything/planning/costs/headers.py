"""The headers of safetensors files: names, shapes and formats of tensors. No weight is read."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rlanything.files.reader import FileError, opened, parse

LONGEST = 100_000_000
"""Bytes of a header. The format's own reader allows as many."""
FILE_MB = 1 << 20
"""Megabytes of a file of weights, of which the header alone is read."""
BYTES = {"F64": 8, "I64": 8, "F32": 4, "I32": 4, "F16": 2, "BF16": 2, "I16": 2, "F8_E4M3": 1, "F8_E5M2": 1, "I8": 1,
         "U8": 1, "BOOL": 1}  # fmt: skip
HEAD = "lm_head.weight"


@dataclass(frozen=True)
class Weights:
    """What some safetensors files hold: numbers, and their bytes on disk."""

    parameters: int
    disk: int


def read_weights(files: Iterable[Path], *, tied: bool) -> Weights:
    """The sum over the files of a model. `tied`: its head is its embedding, and a stored copy of it is not counted.

    Raises `FileError` for a header that is none.
    """
    parameters = disk = 0
    for path in files:
        for name, (count, width) in _tensors(path).items():
            if tied and name == HEAD:
                continue
            parameters += count
            disk += count * width
    return Weights(parameters, disk)


def _tensors(path: Path) -> dict[str, tuple[int, int]]:
    """Name -> (numbers, bytes of each) of every tensor in a file."""
    try:
        header = parse(_header(path))
        if not isinstance(header, dict):
            raise FileError("its header is no JSON object")
        return {str(name): _tensor(name, entry) for name, entry in header.items() if name != "__metadata__"}
    except FileError as error:
        text = str(error)
        raise FileError(text if text.startswith(f"{path}:") else f"{path}: {text}") from None


def _header(path: Path) -> bytes:
    with opened(path, FILE_MB) as file:
        length = int.from_bytes(file.read(8), "little")
        if not 0 < length <= LONGEST:
            raise FileError(f"no safetensors file: its header would have {length:,} bytes")
        data = file.read(length)
    if len(data) < length:
        raise FileError(f"cut off: its header has {length:,} bytes and {len(data):,} are there")
    return data


def _tensor(name: str, entry: Any) -> tuple[int, int]:
    shape = entry.get("shape") if isinstance(entry, dict) else None
    if not isinstance(shape, list) or not all(type(n) is int and 0 <= n < 1 << 40 for n in shape):
        raise FileError(f"tensor {name[:100]!r}: no shape of whole numbers")
    if entry.get("dtype") not in BYTES:
        raise FileError(
            f"tensor {name[:100]!r}: dtype = {str(entry.get('dtype'))[:20]!r}; known: {', '.join(BYTES)}"
        )
    return math.prod(shape), BYTES[entry["dtype"]]
