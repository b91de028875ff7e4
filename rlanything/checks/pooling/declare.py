"""The declaration of a pooling check: experiments/check/pool.yaml, where every key is explained."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import Annotated, Self

from pydantic import Field, field_validator, model_validator

from rlanything.config import LISTED, Section
from rlanything.config.reading import validated
from rlanything.core.errors import ConfigError
from rlanything.files.yaml_file import read_mapping


class Compared(Section):
    """Two arms, of which the difference `arm` minus `over` is pooled."""

    arm: str
    over: str
    reward_above: Annotated[float, Field(ge=0, lt=1)] | None = None
    """Only experiments count whose first reward model is right on a larger share of the steps (balanced); None: all."""

    @model_validator(mode="after")
    def _differ(self) -> Self:
        if self.arm == self.over:
            raise ValueError(f"{self.arm!r} cannot be compared with itself")
        return self

    @property
    def arms(self) -> tuple[str, str]:
        """Both."""
        return self.arm, self.over


class Pooling(Section):
    """Which differences are pooled, over which experiments."""

    comparisons: Annotated[tuple[Compared, ...], LISTED, Field(min_length=1)]
    metrics: Annotated[tuple[str, ...], LISTED, Field(min_length=1)]
    """Their names in evaluation/<arm>.json, e.g. in_domain."""
    folders: Annotated[tuple[str, ...], LISTED, Field(min_length=2)] | None = None
    """Folders with `params.yaml` and `evaluation/`, from the project; None: those of checks/ whose environment is the
    project's."""

    @property
    def pairs(self) -> tuple[tuple[Compared, str], ...]:
        """Every comparison in every metric, in the order of the page."""
        return tuple(product(self.comparisons, self.metrics))

    @field_validator("comparisons", "metrics", "folders")
    @classmethod
    def _once(cls, values: tuple[object, ...] | None) -> tuple[object, ...] | None:
        named = [value.arms if isinstance(value, Compared) else value for value in values or ()]
        twice = [value for value in named if named.count(value) > 1]
        if twice:
            raise ValueError(f"{twice[0]!r} is there twice")
        return values


def load_pooling(path: Path) -> Pooling:
    """What a file declares. Raises `ConfigError` listing every problem."""
    if not path.is_file():
        raise ConfigError(f"{path}: no such file; the project's own is experiments/check/pool.yaml")
    return validated(Pooling, read_mapping(path), f"{path} is not a valid pooling check")
