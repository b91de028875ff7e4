"""Strategies that damage real inputs: random bytes would be refused by the first check of every reader."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from typing import Any

import yaml
from hypothesis import strategies as st


def nested(levels: int) -> Any:
    """A list in a list in a list ..."""
    value: Any = 0
    for _ in range(levels):
        value = [value]
    return value


STRANGE = (
    None, True, False, 0, -1, 1, 2, 3,
    0.5, -0.0, 2**31, 2**63, 2**64, 10**30, 10**400, 1e308, float("inf"), float("nan"),
    "", " ", "0", "x", "\ud800", "\x00", "\n", "é\u202e", "../x", "/etc/passwd", "${oc.env:HOME}",
    "{0.__class__}", "9" * 5000,
    "a" * 70_000, [], {}, [None], [0], [[]], {"": None}, {"a": 1}, [0] * 300, nested(60), nested(190), nested(250),
)  # fmt: skip
CHUNKS = (
    b"", b"\x00", b"\xff", b"\xed\xa0\x80", b"\n", b"\r\n", b"\x85", b"{", b"}", b"[", b"]", b'"', b"\\", b"'",
    b":", b",", b"-", b"&a ",
    b"*a", b"!!python/name:os.system ", b"null", b"NaN", b"-Infinity", b"1e999", b"-1", b"9" * 5000,
    b"1" + b"0" * 400,
    b"\\ud800", b"\\u0000", b"[" * 300, b'{"a":' * 1200, b"<<: ", b"0x1F", b"2026-99-99", b"\xef\xbb\xbf",
    "\u2028é𝟙".encode(),
)  # fmt: skip
_TOKEN = re.compile(rb"[A-Za-z_0-9.+-]+|[^\sA-Za-z_0-9]")
_HUGE = 1 << 20


def damaged(draw: st.DrawFn, data: bytes, words: Sequence[bytes] = ()) -> bytes:
    """`data` with some bytes changed. words: what this kind of input is made of."""
    for _ in range(draw(st.integers(1, 4))):
        change = draw(
            st.sampled_from((_flip, _replace, _replace, _insert, _insert, _cut, _truncate, _repeat, _swap))
        )
        data = change(draw, data, (*words, *words, *CHUNKS))[:_HUGE]
    return data


def _place(draw: st.DrawFn, data: bytes) -> int:
    return draw(st.integers(0, len(data)))


def _flip(draw: st.DrawFn, data: bytes, words: Sequence[bytes]) -> bytes:
    k = _place(draw, data)
    return (
        data[:k] + bytes([byte ^ (1 << draw(st.integers(0, 7))) for byte in data[k : k + 1]]) + data[k + 1 :]
    )


def _replace(draw: st.DrawFn, data: bytes, words: Sequence[bytes]) -> bytes:
    """Another token in the place of one."""
    found = _TOKEN.search(data, _place(draw, data)) or _TOKEN.search(data)
    start, end = found.span() if found else (0, 0)
    return data[:start] + draw(st.sampled_from(words)) + data[end:]


def _insert(draw: st.DrawFn, data: bytes, words: Sequence[bytes]) -> bytes:
    k = _place(draw, data)
    return data[:k] + draw(st.sampled_from(words) | st.binary(max_size=4)) + data[k:]


def _cut(draw: st.DrawFn, data: bytes, words: Sequence[bytes]) -> bytes:
    k = _place(draw, data)
    return data[:k] + data[k + draw(st.integers(1, 40)) :]


def _truncate(draw: st.DrawFn, data: bytes, words: Sequence[bytes]) -> bytes:
    return data[: _place(draw, data)]


def _repeat(draw: st.DrawFn, data: bytes, words: Sequence[bytes]) -> bytes:
    k = _place(draw, data)
    part = data[k : k + draw(st.integers(1, 200))]
    return data[:k] + part * draw(st.sampled_from((2, 2, 3, 1000))) + data[k + len(part) :]


def _swap(draw: st.DrawFn, data: bytes, words: Sequence[bytes]) -> bytes:
    """Lines in another order, one of them perhaps gone or there twice."""
    lines = data.split(b"\n")
    a, b = (draw(st.integers(0, len(lines) - 1)) for _ in range(2))
    lines[a], lines[b] = lines[b], lines[draw(st.sampled_from((a, b)))]
    return b"\n".join(lines)


def json_bytes(tree: Any) -> bytes:
    """One document."""
    return json.dumps(tree).encode()


def line_bytes(tree: Any) -> bytes:
    """A list as one document a line."""
    return b"".join(json.dumps(item).encode() + b"\n" for item in _listed(tree))


def _listed(tree: Any) -> list[Any]:
    return tree if isinstance(tree, list) else [tree]


def yaml_bytes(tree: Any) -> bytes:
    """One document of YAML."""
    return yaml.safe_dump(tree, sort_keys=False).encode("utf-8", "surrogatepass")


def json_lines(data: bytes) -> list[Any]:
    """The documents of JSON lines."""
    return [json.loads(line) for line in data.splitlines()]


READ: dict[str, tuple[Callable[[bytes], Any], Callable[[Any], bytes]]] = {
    "json": (json.loads, json_bytes),
    "lines": (json_lines, line_bytes),
    "yaml": (yaml.safe_load, yaml_bytes),
}
"""Form of an input -> how its tree of values is read and written."""


def rewritten(draw: st.DrawFn, data: bytes, form: str) -> bytes:
    """`data` with values of its tree exchanged, removed, repeated or of another type."""
    read, write = READ[form]
    tree = read(data)
    for _ in range(draw(st.integers(1, 3))):
        tree = _changed(draw, tree, [tree])
    return write(tree)


def _changed(draw: st.DrawFn, value: Any, top: list[Any]) -> Any:
    """`value` with a change somewhere in it. top: the whole tree, whose other values may take its place."""
    if isinstance(value, dict | list) and value and draw(st.integers(0, 5)):
        return _changed_inside(draw, value, top)
    if isinstance(value, str) and value[:1] in ("{", "[") and draw(st.booleans()):
        try:  # JSON in a text of JSON
            return json.dumps(_changed(draw, json.loads(value), top))
        except ValueError:
            return value
    if isinstance(value, str) and draw(st.booleans()):
        data = value.encode("utf-8", "surrogatepass") or b" "
        return damaged(draw, data).decode("utf-8", "replace")
    if type(value) in (int, float) and abs(value) < 1e15 and draw(st.booleans()):
        return draw(st.sampled_from((value + 1, -value, value - 1, value * 1000, float(value), str(value))))
    if draw(st.integers(0, 3)) == 0:
        return _other(draw, top[0])
    return draw(st.sampled_from(STRANGE))


def _changed_inside(draw: st.DrawFn, value: Any, top: list[Any]) -> Any:
    keys = list(value) if isinstance(value, dict) else range(len(value))
    key = draw(st.sampled_from(keys))
    what = draw(st.sampled_from(("in", "in", "in", "in", "gone", "twice", "renamed")))
    made = dict(value) if isinstance(value, dict) else list(value)
    if what == "in":
        made[key] = _changed(draw, value[key], top)
    elif what == "gone":
        del made[key]
    elif isinstance(made, list):
        made.insert(draw(st.integers(0, len(made))), value[key])
    else:
        made[draw(st.sampled_from((*map(str, keys), "", "x", f"{key} ")))] = value[key]
        if what == "renamed":
            made.pop(key)
    return made


def _other(draw: st.DrawFn, value: Any) -> Any:
    """Some value of the tree."""
    while isinstance(value, dict | list) and value and draw(st.integers(0, 3)):
        value = draw(st.sampled_from(list(value.values()) if isinstance(value, dict) else value))
    return value
