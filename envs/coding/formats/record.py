"""Checked access to the fields of an untrusted JSON object; every message names the field."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from typing import Any, NoReturn

from envs.settings import not_one_of
from rlanything.core.errors import UserError
from rlanything.core.types import Json


class FormatError(UserError):
    """A file or a record that is not in its format; the message names file, line and field."""


class Record:
    """An untrusted JSON object. `path`: its place in the record, for messages. All methods raise `FormatError`."""

    def __init__(self, data: Any, path: str = "") -> None:
        self.path = path
        if not isinstance(data, Mapping):
            self.fail("", f"{_kind(data)} where an object must stand")
        self.data: Mapping[str, Json] = data

    def text(self, name: str, default: str | None = None) -> str:
        """A text. `default` stands in for a field that is absent or null."""
        value = self._value(name, default)
        if not isinstance(value, str):
            self.fail(name, f"{_kind(value)} where a text must stand")
        self._require_utf8(name, value)
        return value

    def name(self, name: str) -> str:
        """A text that is not empty, or a number, as text: an identifier."""
        value = self._value(name, None)
        if type(value) is int:
            return str(value)
        if not isinstance(value, str) or not value.strip():
            self.fail(name, f"{_kind(value)} where a name must stand")
        self._require_utf8(name, value)
        return value

    def texts(self, name: str) -> list[str]:
        """A list of texts."""
        value = self._value(name, None)
        if not isinstance(value, list):
            self.fail(name, f"{_kind(value)} where a list must stand")
        for k, item in enumerate(value):
            if not isinstance(item, str):
                self.fail(f"{name}[{k}]", f"{_kind(item)} where a text must stand")
            self._require_utf8(f"{name}[{k}]", item)
        return value

    def number(self, name: str, default: float | None = None) -> float:
        """A finite number that a float can hold."""
        value = self._value(name, default)
        if (
            isinstance(value, bool)
            or not isinstance(value, int | float)
            or not abs(value) <= sys.float_info.max
        ):
            self.fail(name, f"{_kind(value)} where a number must stand")
        return value

    def record(self, name: str, default: Mapping[str, Json] | None = None) -> Record:
        """An object within this one."""
        return Record(self._value(name, default), self._at(name))

    def records(self, name: str) -> list[Record]:
        """A list of objects."""
        value = self._value(name, None)
        if not isinstance(value, list):
            self.fail(name, f"{_kind(value)} where a list must stand")
        return [Record(item, self._at(f"{name}[{k}]")) for k, item in enumerate(value)]

    def one_of(self, name: str, allowed: Iterable[str]) -> str:
        """One of some words."""
        value, words = self.text(name), list(allowed)
        if value not in words:
            self.fail(name, not_one_of(value, words))
        return value

    def parsed(self, name: str, text: str) -> Json:
        """JSON that stands as text in the field."""
        try:
            return strict_json(text)
        except ValueError as error:
            self.fail(name, f"not JSON: {error}")

    def rest(self, used: Iterable[str]) -> dict[str, Json]:
        """The other fields."""
        known = set(used)
        return {key: value for key, value in self.data.items() if key not in known}

    def fail(self, name: str, reason: str) -> NoReturn:
        """Refuse the field; '' is the record itself."""
        raise FormatError(f"{self._at(name) or 'record'}: {reason}")

    def _value(self, name: str, default: Json) -> Json:
        value = self.data.get(name)
        if value is not None:
            return value
        if default is None:
            near = get_close_matches(name, [key for key in self.data if isinstance(key, str)], n=1)
            hint = f" (is {near[0]!r} meant?)" if near and near[0] != name else ""
            self.fail(name, f"missing{hint}" if name not in self.data else "null")
        return default

    def _require_utf8(self, name: str, value: str) -> None:
        try:
            value.encode()
        except UnicodeEncodeError:
            self.fail(name, "half a surrogate pair, which is no text")

    def _at(self, name: str) -> str:
        return f"{self.path}.{name}" if self.path and name else self.path or name


def strict_json(text: str) -> Json:
    """JSON from untrusted text. Raises `ValueError` for anything else: NaN, broken nesting, too deep nesting."""
    try:
        return json.loads(text, parse_constant=_no_constant)
    except RecursionError:
        raise ValueError("nested too deeply") from None


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON number")


def _kind(value: Any) -> str:
    names = {dict: "an object", list: "a list", str: "a text", bool: "true or false", type(None): "null"}
    if isinstance(value, int | float) and not isinstance(value, bool):
        return f"the number {value}"
    if value == "":
        return "an empty text"
    return names.get(type(value), type(value).__name__)
