"""The declaration of an adaptation check: experiments/check/adaptation.yaml, where every key is explained."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, field_validator, model_validator

from rlanything.checks.adaptation.rewrites import Rule
from rlanything.checks.finished_runs import OfRuns
from rlanything.config import CONTROLS, LISTED, Config, Section
from rlanything.config.reading import validated
from rlanything.config.section import Positive
from rlanything.core.errors import ConfigError
from rlanything.files.yaml_file import read_mapping

Probe = Literal["base", "trained"]
"""Who plays a rewrite and the task that it replaces: the policy that training begins with, or that it ends with."""


class Pair(Section):
    """Two rules. Compared is which share of the new tasks that each accepts is in the band."""

    rule: Rule
    over: Rule

    @model_validator(mode="after")
    def _apart(self) -> Pair:
        if self.rule == self.over:
            raise ValueError(f"{self.rule!r} cannot be compared with itself")
        return self


class Adaptation(OfRuns):
    """Whose rewrites are measured, by which policies, on how many rollouts."""

    arm: str = "full"
    against: str | None = "policy_reward"
    """The arm that is the same without rewriting; None: the first tasks are not played, and nothing is compared."""
    probes: Annotated[tuple[Probe, ...], LISTED, Field(min_length=1)] = ("base", "trained")
    rollouts: Positive = 16
    """Of each task of a rewrite, by each probe."""
    first_rollouts: Positive = 8
    """Of each first task, by the final policies of both arms."""
    compare: Annotated[tuple[Pair, ...], LISTED] = (
        Pair(rule="strict", over="refused"),
        Pair(rule="paired", over="strict"),
    )
    """Rules that are tested against each other, by each probe; p is Holm's over all of it."""

    @field_validator("probes")
    @classmethod
    def _once(cls, probes: tuple[Probe, ...]) -> tuple[Probe, ...]:
        twice = [name for name in probes if probes.count(name) > 1]
        if twice:
            raise ValueError(f"{twice[0]!r} is there twice")
        return probes

    @field_validator("compare")
    @classmethod
    def _apart(cls, compare: tuple[Pair, ...]) -> tuple[Pair, ...]:
        both = [{pair.rule, pair.over} for pair in compare]
        for pair, rules in zip(compare, both, strict=True):
            if both.count(rules) > 1:
                raise ValueError(f"{pair.rule!r} and {pair.over!r} are compared twice")
        return compare

    @property
    def arms(self) -> tuple[str, ...]:
        """The arms whose final policies are needed."""
        return (self.arm,) if self.against is None else (self.arm, self.against)

    def measured(self, config: Config) -> tuple[str, ...]:
        """See `OfRuns`."""
        return self.arms

    def check(self, config: Config) -> None:
        """Raise `ConfigError` for arms or seeds that the configuration does not have, or that cannot be compared."""
        for name in self.arms:
            if name in CONTROLS:
                raise ConfigError(f"{name!r} is a control and no arm; it rewrites nothing and trains nothing")
        if not config.arm(self.arm).adapt:
            raise ConfigError(f"arm: {self.arm!r} rewrites no tasks (adapt = false)")
        if self.against is not None:
            differ = _differ(config, self.arm, self.against)
            if differ != ["adapt"]:
                raise ConfigError(
                    f"against: {self.against!r} must differ from {self.arm!r} in `adapt` alone, so that the "
                    f"difference is what rewriting does; it differs in {', '.join(differ) or 'nothing'}"
                )
        super().check(config)


def _differ(config: Config, one: str, other: str) -> list[str]:
    """The switches in which two arms differ."""
    first, second = config.arm(one).model_dump(), config.arm(other).model_dump()
    return [key for key, value in first.items() if value != second[key]]


def load_adaptation(path: Path) -> Adaptation:
    """What a file declares. Raises `ConfigError` listing every problem."""
    if not path.is_file():
        raise ConfigError(f"{path}: no such file; the project's own is experiments/check/adaptation.yaml")
    return validated(Adaptation, read_mapping(path), f"{path} is not a valid adaptation check")
