"""The environment that the configuration names."""

from __future__ import annotations

from rlanything import targets
from rlanything.config import Config
from rlanything.core.errors import ConfigError
from rlanything.core.types import Task, TaskFamily


def family(config: Config) -> TaskFamily:
    """The task family of the configuration. Raises `ConfigError`."""
    made: TaskFamily = targets.instantiate(config.env, "env", TaskFamily)
    return made


def make(made: TaskFamily, split: str, count: int, seed: int) -> list[Task]:
    """Tasks of the family. Raises `ConfigError` when it cannot make as many as the configuration asks for."""
    try:
        return made.make(split, count, seed)
    except ValueError as error:
        raise ConfigError(f"env: {count} tasks of split {split} cannot be made: {error}") from None
