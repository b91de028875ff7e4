"""The declaration of a corruption check: experiments/check/corruption.yaml, where every key is explained."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from pydantic import Field, model_validator

from rlanything.checks.corruption.damage import KINDS
from rlanything.checks.finished_runs import OfRuns
from rlanything.config import BASE, CONTROLS, LISTED, Config
from rlanything.config.reading import validated
from rlanything.core.errors import ConfigError, unknown
from rlanything.files.yaml_file import read_mapping
from rlanything.rewards.kind import kind_of, name_of
from rlanything.rewards.step_votes.kind import StepVotes

Names = Annotated[tuple[str, ...], LISTED, Field(min_length=1)]


class Corruption(OfRuns):
    """Which damage, on which panel, and whose reward models are asked beside the base's."""

    panel: str = "reward_panel"
    kinds: Names = tuple(KINDS)
    arms: Names | None = None
    """None: every arm of the configuration that trains its reward model."""

    @model_validator(mode="after")
    def _known(self) -> Corruption:
        for name in self.kinds:
            if name not in KINDS:
                raise ValueError(f"kinds: {name!r}: {unknown(name, KINDS)}")
        for key in ("kinds", "arms"):
            names = list(getattr(self, key) or ())
            twice = [name for name in names if names.count(name) > 1]
            if twice:
                raise ValueError(f"{key}: {twice[0]!r} is there twice")
        for name in self.arms or ():
            if name in CONTROLS:
                raise ValueError(
                    f"arms: {name!r} is a control and no arm; the base's reward model is always asked"
                )
        return self

    def asked(self, config: Config) -> tuple[str, ...]:
        """The base, and the arms whose reward models are asked. Raises `ConfigError` for one that trains none."""
        if self.arms is None:
            return (BASE, *(name for name, arm in config.arms.items() if arm.train_reward))
        for name in self.arms:
            if not config.arm(name).train_reward:
                raise ConfigError(
                    f"arms: {name!r} trains no reward model (train_reward = false); it has the base's, or another arm's"
                )
        return (BASE, *self.arms)

    def measured(self, config: Config) -> tuple[str, ...]:
        """See `OfRuns`. Each arm that is asked trained its reward model itself."""
        return self.asked(config)[1:]

    def check(self, config: Config) -> None:
        """Raise `ConfigError` for a configuration that has no such panel, arms or seeds, or no votes on steps."""
        if not isinstance(kind_of(config), StepVotes):
            raise ConfigError(
                f"judge.writes = {name_of(config)!r}: the check needs a reward model that votes on steps (env=alfworld)"
            )
        if self.panel not in config.tasks.reward_panels:
            raise ConfigError(f"panel = {self.panel!r}: {unknown(self.panel, config.tasks.reward_panels)}")
        super().check(config)
        if len(self.asked(config)) == 1:
            raise ConfigError("arms: no arm of the configuration trains a reward model")


def load_corruption(path: Path) -> Corruption:
    """What a file declares. Raises `ConfigError` listing every problem."""
    if not path.is_file():
        raise ConfigError(f"{path}: no such file; the project's own is experiments/check/corruption.yaml")
    return validated(Corruption, read_mapping(path), f"{path} is not a valid corruption check")
