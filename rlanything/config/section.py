"""What every section of the configuration is made of: strict immutable values, and the types of its numbers."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from rlanything.core.printable import shown

LISTED = Field(strict=False)
"""Marks a tuple, which YAML writes as a list. Its elements stay strict."""
Positive = Annotated[int, Field(gt=0, lt=1 << 63)]
"""What 64 bits hold: numbers beyond all floats would end a calculation with them."""
Rate = Annotated[float, Field(gt=0)]
Temperature = Annotated[float, Field(ge=0)]
"""Of sampling that is only measured; 0 takes the most likely token. Training samples at a `Rate`, above 0."""
Share = Annotated[float, Field(ge=0, le=1)]
Precision = Literal["32-true", "bf16-mixed", "bf16-true"]
"""Lightning's name for the number formats in which a model is kept and computes."""


def _is_json(section: dict[str, Any]) -> dict[str, Any]:
    """The same section. Raises `ValueError` for what a run cannot store as it is, such as NaN, bytes and dates."""
    for place, value in _leaves(section):
        if not _is_scalar(value):
            raise ValueError(
                f"{place} = {shown(value)}: must be a text, a finite number, true, false or null, or a list or "
                "mapping of them by texts, because a run stores its configuration as JSON"
            )
    return section


def _is_scalar(value: Any) -> bool:
    """Whether JSON holds a value that is no list and no mapping by texts. Python writes no number of 4301 digits."""
    try:
        json.dumps(value, allow_nan=False)
    except (TypeError, ValueError):
        return False
    return not isinstance(value, dict)


def _leaves(
    value: dict[Any, Any] | list[Any] | tuple[Any, ...], above: str = ""
) -> Iterator[tuple[str, Any]]:
    """Place and value of all that is no list and no mapping by texts."""
    for key, item in value.items() if isinstance(value, dict) else enumerate(value):
        by_texts = isinstance(item, dict) and all(isinstance(name, str) for name in item)
        if by_texts or isinstance(item, list | tuple):
            yield from _leaves(item, f"{above}{key}.")
        else:
            yield f"{above}{key}", item


Arguments = Annotated[dict[str, Any], AfterValidator(_is_json)]
"""The arguments of a class."""


def _has_target(section: dict[str, Any]) -> dict[str, Any]:
    if not isinstance(section.get("_target_"), str):
        raise ValueError("_target_ is missing: name the class, e.g. lightning.pytorch.loggers.CSVLogger")
    return section


Named = Annotated[Arguments, AfterValidator(_has_target)]
"""A class by `_target_`, with its arguments."""


class Section(BaseModel):
    """A part of the configuration: unknown keys refused, values immutable, no NaN, no value taken for another type."""

    model_config = ConfigDict(
        extra="forbid", frozen=True, populate_by_name=True, allow_inf_nan=False, strict=True
    )


def ordered(section: BaseModel, low: str, high: str, *, strict: bool) -> None:
    """Raise `ValueError` unless `low` < `high` (<= when not strict)."""
    a, b = getattr(section, low), getattr(section, high)
    if a > b or (strict and a == b):
        raise ValueError(f"{low} = {a} must be {'below' if strict else 'at most'} {high} = {b}")
