"""The declaration of a ladder: experiments/check/ladder.yaml, where every key is explained."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from pydantic import Field, model_validator

from rlanything.checks.training import CEILING, EXPERT, Open, Point, Several, Training
from rlanything.config import BASE, BASE_COOLED, LISTED, Config, Section
from rlanything.config.reading import validated
from rlanything.config.section import Rate, Share
from rlanything.core.errors import ConfigError, unknown
from rlanything.files.yaml_file import read_mapping

LADDER_CONTROLS = (BASE_COOLED, CEILING, EXPERT)
"""What is measured beside `base` and the arms; names of files in the workspace's evaluation/."""


class Fitness(Section):
    """When a regime is fit to compare arms in. All differences are shares of solved tasks."""

    panel: str = "in_domain"
    gain: Share = 0.15
    """Least gain of perfect votes over the zero arm."""
    headroom: Share = 0.20
    """Least distance of the cooled base below the ceiling."""
    effect: Open = 0.05
    """The difference between two arms that is looked for."""
    standard_errors: Rate = 4.0
    """How many standard errors of a difference the effect must be."""


class Power(Section):
    """Of the two-sided test, and for which numbers of seeds and games the smallest difference is printed."""

    power: Open = 0.8
    alpha: Open = 0.05
    seeds: Annotated[tuple[Several, ...], LISTED] = ()
    games: Annotated[tuple[Several, ...], LISTED] = ()

    @model_validator(mode="after")
    def _possible(self) -> Power:
        if self.power <= self.alpha:
            raise ValueError(
                f"power = {self.power:g}: must be above alpha = {self.alpha:g}, with which the test finds a difference "
                "of 0"
            )
        return self


class Ladder(Training):
    """One ladder."""

    READING = frozenset({"fitness", "power"})

    zero: str = "outcome"
    """The arm that every gain is over."""
    accuracies: Annotated[tuple[Share, ...], LISTED, Field(min_length=1)] = (0.6, 0.75, 0.85, 1.0)
    systematic: Annotated[tuple[Share, ...], LISTED, Field(min_length=1)] = (0.0,)
    """Shares of systematic errors; each accuracy below 1 is run with each."""
    compare: Annotated[tuple[str, ...], LISTED] = ()
    """Arms with reward models of their own."""
    fitness: Fitness = Fitness()
    power: Power = Power()

    @model_validator(mode="after")
    def _consistent(self) -> Ladder:
        if 1.0 not in self.accuracies:
            raise ValueError("accuracies: 1.0 is missing; perfect votes decide whether the regime is fit")
        for name in ("accuracies", "systematic", "compare"):
            values = list(getattr(self, name))
            twice = [value for value in values if values.count(value) > 1]
            if twice:
                raise ValueError(f"{name}: {twice[0]!r} is there twice")
        for name in (self.zero, *self.compare):
            if name in (BASE, *LADDER_CONTROLS):
                raise ValueError(f"{name!r} is a control and no arm")
        if self.zero in self.compare:
            raise ValueError(f"compare: {self.zero!r} is the zero that the others are compared with")
        self._require_own_keys()
        self._require_own_names()
        return self

    @property
    def points(self) -> tuple[Point, ...]:
        """Its judges, by share of systematic errors, then by accuracy; perfect votes are there once for each share."""
        return tuple(
            dict.fromkeys(
                Point(q, 0.0 if q == 1.0 else s) for s in self.systematic for q in sorted(self.accuracies)
            )
        )

    @property
    def trained(self) -> tuple[str, ...]:
        """Every arm that is trained, in this order."""
        return (self.zero, *(point.arm for point in self.points), *self.compare)

    def _require_own_names(self) -> None:
        """Raise `ValueError` where two judges would have one arm, whose name holds six digits of a share."""
        first: dict[str, Point] = {}
        for point in self.points:
            other = first.setdefault(point.arm, point)
            for key in ("accuracy", "systematic"):
                one, two = getattr(other, key), getattr(point, key)
                if one != two:
                    raise ValueError(
                        f"{one} and {two} are too close: both would be the arm {point.arm!r}; keep one of them"
                    )
        if taken := next((name for name in self.compare if name in first), None):
            raise ValueError(f"compare: {taken!r} is the arm of one of the accuracies")

    def check(self, config: Config) -> None:
        """Raise `ConfigError` for an arm, a panel or a control that its configuration cannot have."""
        known, panel = config.tasks.policy_panels, self.fitness.panel
        if panel not in known:
            raise ConfigError(f"fitness.panel = {panel!r}: {unknown(panel, known)}")
        super().check(config)


def load_ladder(path: Path) -> Ladder:
    """The ladder that a file declares. Raises `ConfigError` listing every problem."""
    if not path.is_file():
        raise ConfigError(f"{path}: no such file; the project's own is experiments/check/ladder.yaml")
    return validated(Ladder, read_mapping(path), f"{path} is not a valid ladder")
