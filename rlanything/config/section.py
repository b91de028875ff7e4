"""What every section of the configuration is made of: strict immutable values, and the types of its numbers."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

LISTED = Field(strict=False)
"""Marks a tuple, which YAML writes as a list. Its elements stay strict."""
Positive = Annotated[int, Field(gt=0)]
Rate = Annotated[float, Field(gt=0)]
Temperature = Annotated[float, Field(ge=0)]
"""Of sampling that is only measured; 0 takes the most likely token. Training samples at a `Rate`, above 0."""
Share = Annotated[float, Field(ge=0, le=1)]


def _has_target(section: dict[str, Any]) -> dict[str, Any]:
    if not isinstance(section.get("_target_"), str):
        raise ValueError("_target_ is missing: name the class, e.g. lightning.pytorch.loggers.CSVLogger")
    return section


Named = Annotated[dict[str, Any], AfterValidator(_has_target)]
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
