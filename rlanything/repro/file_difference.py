"""Finds the first place where two versions of a file differ, and names it: a token, a key, a tensor."""

from __future__ import annotations

import gzip
import io
import json
import math
import struct
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise, zip_longest
from pathlib import PurePosixPath
from typing import Any

from safetensors import SafetensorError, deserialize

from rlanything.core.types import Json
from rlanything.files.reader import MOST_MB, parse

MISSING: Any = object()
SHOWN = 80
"""Characters of a value that are printed."""
_LONGEST = MOST_MB << 20
"""Bytes of a line that are held. An archive may hold a line of any length."""


@dataclass(frozen=True)
class Place:
    """Where two versions of a file first differ, and both values. `iteration` is None for a file of no iteration."""

    where: str
    first: str
    second: str
    iteration: int | None = None


def first_place(path: PurePosixPath, first: bytes, second: bytes) -> Place:
    """Where two contents of `path`, which are not equal, first differ."""
    reader = _reader(path)
    try:
        return reader(path, first, second)
    except (ValueError, KeyError, TypeError, EOFError, OSError, zlib.error, SafetensorError):
        return _bytes(path, first, second)  # the content does not fit the name; bytes can always be compared


def _reader(path: PurePosixPath) -> Callable[[PurePosixPath, bytes, bytes], Place]:
    if path.parent.name == "rollouts":
        return _rollouts
    if path.parent.name == "tests":
        return _tests
    if path.parent.name == "critics":
        return _critics
    if path.name.endswith((".jsonl", ".jsonl.gz")):
        return _lines
    return {".safetensors": _tensors, ".json": _json}.get(path.suffix, _bytes)


def _rollouts(path: PurePosixPath, first: bytes, second: bytes) -> Place:
    """The place as slot, rollout, step and token."""
    return _recorded(path, first, second, "episode", _episode)


def _tests(path: PurePosixPath, first: bytes, second: bytes) -> Place:
    """The place as slot, test and token, or as the program with another result on a test."""
    return _recorded(path, first, second, "task", lambda task: f"slot {task['slot']}, tests")


def _critics(path: PurePosixPath, first: bytes, second: bytes) -> Place:
    """The place as slot and critique."""
    return _recorded(path, first, second, "task", lambda task: f"slot {task['slot']}, critics")


def _recorded(
    path: PurePosixPath, first: bytes, second: bytes, unit: str, named: Callable[[Json], str]
) -> Place:
    iteration = int(path.name.removeprefix("iter_").partition(".")[0]) - 1
    for number, a, b in _unequal(path, first, second):
        if a == b:
            continue
        if a is MISSING or b is MISSING:
            return Place(f"{unit} {number}", _shown(a), _shown(b), iteration)
        keys, x, y = _descend(a, b)
        return Place(f"{named(a)}, {_readable(keys)}", _shown(x), _shown(y), iteration)
    return _bytes(path, first, second)


def _episode(record: Json) -> str:
    trajectory = record["trajectory"]
    return f"slot {trajectory['slot']}, rollout {trajectory['rollout']}"


def _lines(path: PurePosixPath, first: bytes, second: bytes) -> Place:
    """The place as line and key."""
    for number, a, b in _unequal(path, first, second):
        if a != b:
            keys, x, y = _descend(a, b)
            return Place(_joined(f"line {number + 1}", keys), _shown(x), _shown(y), _iteration(path, a, b))
    return _bytes(path, first, second)


def _json(path: PurePosixPath, first: bytes, second: bytes) -> Place:
    keys, x, y = _descend(parse(first), parse(second))
    return Place(_joined("", keys), _shown(x), _shown(y)) if keys else _bytes(path, first, second)


def _tensors(path: PurePosixPath, first: bytes, second: bytes) -> Place:
    """The place as tensor and element."""
    one, two = dict(deserialize(first)), dict(deserialize(second))
    for name in dict.fromkeys([*one, *two]):
        a, b = one.get(name), two.get(name)
        if a is None or b is None or (a["dtype"], a["shape"]) != (b["dtype"], b["shape"]):
            return Place(f"tensor {name}", _shape(a), _shape(b))
        if a["data"] != b["data"]:
            return _element(name, a, b)
    return _bytes(path, first, second)


def _element(name: str, first: dict[str, Any], second: dict[str, Any]) -> Place:
    """The first element that differs between two tensors of the same type and shape."""
    data = first["data"], second["data"]
    size = len(data[0]) // math.prod(first["shape"])
    number = _first_byte(*data) // size
    at = slice(number * size, (number + 1) * size)
    one, two = (_number(bytes(part[at]), first["dtype"]) for part in data)
    return Place(f"tensor {name}, element {number}", one, two)


def _shape(tensor: dict[str, Any] | None) -> str:
    return "missing" if tensor is None else f"{tensor['dtype']} {tensor['shape']}"


def _bytes(path: PurePosixPath, first: bytes, second: bytes) -> Place:
    at = _first_byte(first, second)
    if at == min(len(first), len(second)):
        return Place("length", f"{len(first)} bytes", f"{len(second)} bytes")
    return Place(f"byte {at}", first[at : at + 8].hex(), second[at : at + 8].hex())


def _unequal(path: PurePosixPath, first: bytes, second: bytes) -> Iterator[tuple[int, Any, Any]]:
    """(number, value, value) of each line that has other bytes in the other content; `MISSING` after its last line.

    Only these lines are read as JSON, and no more than a line of each content is kept. So files that are equal but for
    their end are compared as fast as they are unpacked.
    """
    pairs = zip_longest(_lines_of(path, first), _lines_of(path, second), fillvalue=MISSING)
    for number, pair in enumerate(pairs):
        if pair[0] != pair[1]:
            one, two = (line if line is MISSING else parse(line) for line in pair)
            yield number, one, two


def _lines_of(path: PurePosixPath, data: bytes) -> Iterator[bytes]:
    """The lines of a content, unpacked. Raises `ValueError` for one that is longer than a file may be."""
    source: Any = io.BytesIO(data)
    if path.suffix == ".gz":
        source = gzip.GzipFile(fileobj=source)
    while line := source.readline(_LONGEST + 1):
        if len(line) > _LONGEST:
            raise ValueError(f"{path}: a line of more than {_LONGEST} bytes")
        yield line


def _iteration(path: PurePosixPath, *records: Any) -> int | None:
    """The iteration in a snapshot's file name, otherwise the smallest one in the records."""
    if path.name.startswith("iter_"):
        return int(path.name.removeprefix("iter_").partition(".")[0])
    said = [r["iteration"] for r in records if isinstance(r, dict) and isinstance(r.get("iteration"), int)]
    return min(said, default=None)


def _descend(first: Json, second: Json) -> tuple[list[str | int], Json, Json]:
    """The keys that lead to the first difference, and both values there. Causes are compared before their effects."""
    keys: list[str | int] = []
    while True:
        found = next((k for k in _common(first, second) if _differ(_get(first, k), _get(second, k))), None)
        if found is None:
            return keys, first, second
        keys.append(found)
        first, second = _get(first, found), _get(second, found)


def _differ(first: Json, second: Json) -> bool:
    """Whether two values differ. NaN is like NaN, as it is inside of lists and objects that the reader has read."""
    return bool(first != second and not (first != first and second != second))


def _common(first: Json, second: Json) -> Sequence[str | int]:
    """All keys of two objects, or all indices of two lists; () for anything else."""
    if isinstance(first, dict) and isinstance(second, dict):
        return sorted({*first, *second}, key=_rank)
    if isinstance(first, list) and isinstance(second, list):
        return range(max(len(first), len(second)))
    return ()


def _get(value: Json, key: Any) -> Json:
    if isinstance(value, list):
        return value[key] if key < len(value) else MISSING
    return value.get(key, MISSING)


_CAUSES = (
    "trajectory",
    "seed",
    "version",
    "first_observation",
    "first_images",
    "steps",
    "prompt_kept",
    "prompt_added",
    "response",
    "images",
    "judgements",
    "examined",
    "judgement",
    "votes",
    "tables",
    "tests",
    "dataset",
    "generated",
    "critiques",
    "left_out",
    "reply",
)
"""Keys in the order in which an episode is made, so that a cause is named before its effects."""


def _rank(key: str) -> tuple[int, str]:
    return (_CAUSES.index(key) if key in _CAUSES else len(_CAUSES), key)


_NAMES = {
    "steps": "step",
    "response": "token",
    "prompt_added": "prompt token",
    "judgements": "judged step",
    "votes": "vote",
    "tests": "written test",
    "critiques": "critique",
    "dataset": "own tests of program",
    "generated": "written tests of program",
}
_OMITTED = ("trajectory", "examined", "judgement", "tables")


def _readable(keys: Sequence[str | int]) -> str:
    """`trajectory.steps.3.response.2` as `step 3, token 2`."""
    words: list[str] = []
    for before, key in pairwise(["", *keys]):
        if isinstance(key, str):
            words += [] if key in _OMITTED else [key]
        elif isinstance(before, str) and words:
            words.append(f"{_NAMES.get(words.pop(), 'number')} {key}")
        else:
            words.append(f"number {key}")
    return ", ".join(words)


def _joined(head: str, keys: Sequence[str | int]) -> str:
    tail = ".".join(map(str, keys))
    return f"{head}, {tail}" if head and tail else head or tail


def _shown(value: Any) -> str:
    text = "nothing" if value is MISSING else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= SHOWN else f"{text[: SHOWN - 3]}..."


def _number(data: bytes, dtype: str) -> str:
    """An element's value and bytes, or only its bytes for types that `struct` cannot read."""
    code = {"F64": "<d", "F32": "<f", "F16": "<e"}.get(dtype)
    return f"{struct.unpack(code, data)[0]!r} (bytes {data.hex()})" if code else f"bytes {data.hex()}"


def _first_byte(first: bytes, second: bytes) -> int:
    """The first position at which two contents differ, or the length of the shorter."""
    low, high = 0, min(len(first), len(second))
    if first[:high] == second[:high]:
        return high
    while high - low > 1:  # halving is much faster than a Python loop over millions of bytes
        middle = (low + high) // 2
        low, high = (middle, high) if first[low:middle] == second[low:middle] else (low, middle)
    return low
