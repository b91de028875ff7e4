"""What all declarations have in common of checks that train arms of their own, in a workspace of their own."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, ClassVar

from pydantic import Field

from rlanything.config import LISTED, Config, Section
from rlanything.core.errors import ConfigError
from rlanything.core.types import Json
from rlanything.sweep.declare.override import SET_OTHERWISE

CEILING, EXPERT = "ceiling", "expert"
Several = Annotated[int, Field(ge=2)]
"""Two at least: with one nothing can be said about others."""
Open = Annotated[float, Field(gt=0, lt=1)]


class Ceiling(Section):
    """How the same architecture is supervised on clean demonstrations: overrides on top of the check's."""

    overrides: Annotated[tuple[str, ...], LISTED, Field(min_length=1)]


@dataclass(frozen=True, slots=True)
class Point:
    """One oracle that judges in place of the reward model."""

    accuracy: float
    systematic: float

    @property
    def arm(self) -> str:
        """Its arm: `oracle_85`, `oracle_85_s50`."""
        shares = [self.accuracy, *([self.systematic] if self.systematic else [])]
        return "oracle_" + "_s".join(f"{100 * share:.6g}".replace(".", "p") for share in shares)


class Training(Section):
    """The arms of a check, and its controls."""

    READING: ClassVar[frozenset[str]] = frozenset()
    """Keys that decide how results are read, and change none of them."""

    overrides: Annotated[tuple[str, ...], LISTED] = ()
    """Hydra overrides of the whole check."""
    seeds: Several = 3
    judged: str = "policy"
    """The file of experiments/arm/ in which the oracle judges in place of the reward model."""
    ceiling: Ceiling | None = None
    expert: bool = True

    @property
    def points(self) -> tuple[Point, ...]:
        """The oracles that judge."""
        raise NotImplementedError

    @property
    def trained(self) -> tuple[str, ...]:
        """Every arm that is trained, in this order."""
        raise NotImplementedError

    def hydra_overrides(self, workers: int) -> list[str]:
        """The Hydra overrides of the whole check."""
        return [
            *self.overrides,
            f"train.seeds={self.seeds}",
            f"train.workers={workers}",
            *(override for point in self.points for override in self._judge(point)),
        ]

    def making(self) -> dict[str, Json]:
        """What the results depend on."""
        return self.model_dump(mode="json", exclude=set(self.READING))

    def check(self, config: Config) -> None:
        """Raise `ConfigError` for an arm, a panel or a control that its configuration cannot have."""
        for name in config.tasks.policy_panels:
            if config.tasks.panels[name].tasks < 2:
                raise ConfigError(f"tasks.panels.{name}.tasks = 1: a spread over games needs two of them")
        for place, name in enumerate(self.trained):
            source = config.arm(name).reward_from
            if source is not None and source not in self.trained[:place]:
                raise ConfigError(f"{name!r} is judged by the reward model of {source!r}: name it before")
        if self.ceiling is not None and config.evaluate.cooling is None:
            raise ConfigError(
                "ceiling: is measured at its own best temperature; evaluate.cooling must say which are tried"
            )
        if self.ceiling is not None and config.model.embedded is None:
            raise ConfigError(
                "ceiling: only embedded models are supervised on demonstrations (model.embedded is null); leave it out"
            )

    def _judge(self, point: Point) -> Iterator[str]:
        yield f"+arm@arms.{point.arm}={self.judged}"
        judge = f"source: oracle, accuracy: {point.accuracy}, systematic: {point.systematic}"
        yield f"arms.{point.arm}.judge={{{judge}}}"

    def _require_own_keys(self) -> None:
        """Raise `ValueError` for an override of what the check sets itself."""
        for override in self.overrides + (self.ceiling.overrides if self.ceiling else ()):
            key = override.partition("=")[0]
            if key in SET_OTHERWISE:
                raise ValueError(f"{key}: a check sets it by {SET_OTHERWISE[key]!r}")
