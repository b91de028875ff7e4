"""The shape of a JSON text: the text without the values of its objects. Many texts have few shapes.

`{"goal":{"n":7},"room":"red"}` has the shape `{"goal":{"n":null},"room":null}`. Polars makes the shapes of a column
with one regular expression, and only a shape is parsed. What a shape says holds for every text that has it:

- The expression replaces complete values that are written as canonical JSON writes them: texts without escapes and
  colons, whole numbers, short decimals, true, false and null. What else there is stays in the shape as it is.
- In a clean shape no text and no key has a colon. So each colon stands between a key and its value, also in the texts
  that have this shape, and a value was replaced by a value.
- So a text with a clean shape is canonical JSON, its values in the order of the shape's nulls. A shape is clean when it
  is canonical JSON itself, and has as many colons as its objects have keys.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import polars as pl

from rlanything.core.ids import canonical_json
from rlanything.core.types import Json
from rlanything.files.reader import parse

_TEXT = r'"[^"\\:\x00-\x1f]*"'
_DECIMAL = r"0\.0{0,3}[1-9](?:[0-9]{0,9}[1-9])?|0\.0|[1-9][0-9]{0,6}\.(?:0|[0-9]{0,7}[1-9])"
"""Decimals of at most 15 digits, at least 0.0001: Python writes them as they were written."""
_WHOLE = r"[1-9][0-9]{0,17}"
_VALUE = rf":(?:{_TEXT}|-?(?:{_DECIMAL}|{_WHOLE})|0|true|false|null)"
"""A colon and a value. No longer value begins like one of these, except where the shape is then no JSON."""


@dataclass(frozen=True)
class Value:
    """Stands in a shape for the value that a text has at this place among its `values`."""

    place: int


def shapes(texts: pl.Series) -> pl.Series:
    """The shape of each text."""
    return texts.str.replace_all(_VALUE, ":null")


def values(texts: pl.Series) -> pl.Series:
    """The values of each text, in the order of the nulls of its shape, which must be clean (see `parsed_value`)."""
    return texts.str.extract_all(_VALUE)


def parsed_value(found: str) -> Json:
    """The value that an entry of `values` stands for."""
    return parse(found[1:].encode())


def is_clean(shape: str) -> bool:
    """Whether every text of this shape is canonical JSON of an object, and has its values where the shape has nulls."""
    try:
        found = parse(shape.encode())
        return isinstance(found, dict) and canonical_json(found) == shape and shape.count(":") == _keys(found)
    except ValueError:  # it is broken, too deep, or holds what JSON cannot hold
        return False


def marked(shape: str, places: Iterator[int]) -> dict[str, Json]:
    """The object that a clean shape stands for, with a `Value` for each null; `places`: the numbers that they get."""
    found: dict[str, Json] = _marked(parse(shape.encode()), places)
    return found


def _marked(value: Json, places: Iterator[int]) -> Json:
    """The value with a `Value` for each null of an object. Those of lists were nulls in the text."""
    if isinstance(value, dict):
        return {
            key: Value(next(places)) if item is None else _marked(item, places) for key, item in value.items()
        }
    return [_marked(item, places) for item in value] if isinstance(value, list) else value


def _keys(value: Json) -> int:
    """How many keys the objects in a value have."""
    if isinstance(value, dict):
        return len(value) + sum(map(_keys, value.values()))
    return sum(map(_keys, value)) if isinstance(value, list) else 0
