"""Compares a stored record with its form: a type that names its fields and what each may hold."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any

from pydantic import AfterValidator, Field, InstanceOf, TypeAdapter, ValidationError

from rlanything.core.errors import unknown
from rlanything.core.images.png import NAME
from rlanything.core.types import Json

Text = InstanceOf[str]
"""Any string. Pydantic's own strings cannot hold a lone surrogate, and a model's reply may contain one."""
_MOST = (1 << 63) - 1
Integer = Annotated[int, Field(ge=-_MOST - 1, le=_MOST)]
"""Any integer that columns of a table and tensors hold: 64 bits. One of JSON has any number of digits."""
Count = Annotated[int, Field(ge=0, le=_MOST)]
Number = Annotated[float, Field(allow_inf_nan=False, gt=-(2.0**63), lt=2.0**63)]
"""A finite number. One of JSON may be an integer, so it has the bounds of one."""


def _sign(value: int) -> int:
    if value not in (1, -1):
        raise ValueError(f"{value}: must be 1 or -1")
    return value


Sign = Annotated[int, AfterValidator(_sign)]


def _image_name(value: str) -> str:
    if not NAME.fullmatch(value):
        raise ValueError(f"{value[:70]!r}: the name of a picture is its sha256, 64 hex digits")
    return value


ImageName = Annotated[Text, AfterValidator(_image_name)]


def text_of(words: type[StrEnum]) -> Any:
    """The type of a field that holds one of these words."""

    def check(value: str) -> str:
        if value not in set(words):
            raise ValueError(f"{value[:40]!r}: {unknown(value[:40], list(words))}")
        return value

    return Annotated[Text, AfterValidator(check)]


class Form:
    """A form, e.g. a `TypedDict`. Keys that it does not name are allowed: later versions may store more."""

    def __init__(self, form: Any) -> None:
        self._adapter: TypeAdapter[Any] = TypeAdapter(form)

    def check(self, value: Json) -> None:
        """Raise `ValueError`, naming the first field that does not fit. Types are strict: true is no number."""
        try:
            self._adapter.validate_python(value, strict=True)
        except ValidationError as error:
            raise ValueError(first_error(error)) from None


def first_error(error: ValidationError, *where: str) -> str:
    """The place and the words of the first of the errors, and how many more there are. where: what the form is in."""
    item = error.errors()[0]
    place = ".".join(filter(None, [*where, *map(str, item["loc"])]))
    more = error.error_count() - 1
    words = item["msg"].removeprefix("Value error, ") + (f" (and {more} more)" if more else "")
    return f"{place}: {words}" if place else words


def require_equal(name: str, found: int, of: str, wanted: int) -> None:
    """Raise `ValueError` unless as many `name` are there as `of`, to which they belong."""
    if found != wanted:
        raise ValueError(f"{found} {name} for {wanted} {of}")
