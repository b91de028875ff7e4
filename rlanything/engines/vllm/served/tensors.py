"""Files of weights in the format safetensors, written one tensor after the other.

The library's own writer wants all tensors in the memory of the host at once.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import torch
from torch import Tensor

from rlanything.core.errors import UserError

NAMES = {
    torch.float64: "F64",
    torch.float32: "F32",
    torch.float16: "F16",
    torch.bfloat16: "BF16",
    torch.int64: "I64",
    torch.int32: "I32",
    torch.int16: "I16",
    torch.int8: "I8",
    torch.uint8: "U8",
    torch.bool: "BOOL",
}
"""What the format calls kinds of numbers."""
STEP = 8
"""The bytes before the first number are a multiple of this, so that each number lies where a processor reads it."""


def write_tensors(path: Path, weights: Mapping[str, Tensor], dtype: torch.dtype) -> None:
    """Write all tensors of a state, also tied ones, under each of their names. Floating numbers become `dtype`.

    Each tensor is asked for twice, first for its shape alone: one that is made when it is asked for is gone before the
    next one is. Raises `UserError` for a kind of numbers that the format lacks, and `OSError`.
    """
    parts = {name: _part(name, weights[name], dtype) for name in weights}
    order = sorted(
        parts, key=lambda name: (-parts[name][0].itemsize, name)
    )  # large numbers first: none lies askew
    header, end = dict[str, object](__metadata__={"format": "pt"}), 0
    for name in order:
        kind, shape = parts[name]
        begin, end = end, end + kind.itemsize * shape.numel()
        header[name] = {"dtype": NAMES[kind], "shape": list(shape), "data_offsets": [begin, end]}
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % STEP)
    with path.open("wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        for name in order:
            file.write(_bytes(weights[name], parts[name][0]))


def _part(name: str, tensor: Tensor, dtype: torch.dtype) -> tuple[torch.dtype, torch.Size]:
    """The kind of numbers that a tensor has in the file, and its shape."""
    kind = dtype if tensor.is_floating_point() else tensor.dtype
    if kind not in NAMES:
        raise UserError(
            f"{name!r}: no file for servers holds numbers of {kind}; allowed: {', '.join(map(str, NAMES))}"
        )
    return kind, tensor.shape


def _bytes(tensor: Tensor, kind: torch.dtype) -> memoryview:
    """The numbers of a tensor. Those that lie as they must in the memory of the host are not copied."""
    flat = tensor.detach().to("cpu", kind).contiguous().flatten()
    return flat.view(torch.uint8).numpy().data
