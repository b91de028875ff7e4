"""The declaration of a selection: experiments/check/selection.yaml, where every key is explained."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from pydantic import Field, field_validator

from rlanything.checks.finished_runs import OfRuns
from rlanything.checks.selection.methods import METHODS
from rlanything.config import CONTROLS, LISTED, Config
from rlanything.config.reading import validated
from rlanything.config.section import Positive, Rate
from rlanything.core.errors import ConfigError, unknown
from rlanything.files.yaml_file import read_mapping
from rlanything.rewards.kind import kind_of, name_of
from rlanything.rewards.unit_tests.kind import UnitTests
from rlanything.runs.resuming.began import measured_of

SINGLE, ORACLE = "single", "oracle"
"""The mean of single programs (pass@1), and the choice of whoever knows which are right (pass@N)."""


class Selection(OfRuns):
    """What is sampled, what chooses, and whose pairs are measured beside the base's."""

    panel: str = "in_domain"
    programs: Annotated[int, Field(ge=2)] = 8
    """N of each problem."""
    tests: Positive = 8
    """M of each problem."""
    temperature: Rate = 1.0
    """Of the policy; the reward model has `judge.temperature`."""
    methods: Annotated[tuple[str, ...], LISTED, Field(min_length=1)] = tuple(METHODS)
    arms: Annotated[tuple[str, ...], LISTED, Field(min_length=1)] | None = None
    """None: every arm of the configuration that a model judged."""

    @field_validator("methods")
    @classmethod
    def _known(cls, methods: tuple[str, ...]) -> tuple[str, ...]:
        for name in methods:
            if name not in METHODS:
                raise ValueError(f"{name!r}: {unknown(name, METHODS)}")
        return _once(methods)

    @field_validator("arms")
    @classmethod
    def _arms_once(cls, arms: tuple[str, ...] | None) -> tuple[str, ...] | None:
        for name in arms or ():
            if name in CONTROLS:
                raise ValueError(f"{name!r} is a control and no arm; the base's pair is always measured")
        return None if arms is None else _once(arms)

    @property
    def columns(self) -> tuple[str, ...]:
        """Everything that is measured of a pair: both bounds around the methods."""
        return (SINGLE, *self.methods, ORACLE)

    def trained(self, config: Config) -> tuple[str, ...]:
        """The arms whose pairs are measured. Raises `ConfigError` for one that has no reward model."""
        if self.arms is None:
            return tuple(name for name, arm in config.arms.items() if not config.judge_for(arm).is_oracle)
        for name in self.arms:
            if config.judge_for(config.arm(name)).is_oracle:
                raise ConfigError(
                    f"arms: the oracle judged {name!r}; it has no reward model that writes tests"
                )
        return self.arms

    def measured(self, config: Config) -> tuple[str, ...]:
        """See `OfRuns`. The reward model of a pair may lie in the run of another arm (`reward_from`)."""
        found = (name for arm in self.trained(config) for name in measured_of(config, arm))
        return tuple(dict.fromkeys(found))

    def check(self, config: Config) -> None:
        """Raise `ConfigError` for a configuration that has no such panel, arms or seeds, or no written tests."""
        if not isinstance(kind_of(config), UnitTests):
            raise ConfigError(
                f"judge.writes = {name_of(config)!r}: a selection needs a reward model that writes tests; "
                "use a project of the coding setting (env=coding, env=coding_data)"
            )
        if self.panel not in config.tasks.policy_panels:
            raise ConfigError(f"panel = {self.panel!r}: {unknown(self.panel, config.tasks.policy_panels)}")
        super().check(config)
        if not self.trained(config):
            raise ConfigError("arms: the configuration has no arm that a model judged")


def load_selection(path: Path) -> Selection:
    """The selection that a file declares. Raises `ConfigError` listing every problem."""
    if not path.is_file():
        raise ConfigError(f"{path}: no such file; the project's own is experiments/check/selection.yaml")
    return validated(Selection, read_mapping(path), f"{path} is not a valid selection")


def _once(names: tuple[str, ...]) -> tuple[str, ...]:
    twice = [name for name in names if names.count(name) > 1]
    if twice:
        raise ValueError(f"{twice[0]!r} is there twice")
    return names
