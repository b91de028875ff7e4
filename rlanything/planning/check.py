"""Checks before any work starts: class names, constructor arguments and prompt files of the configuration."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rlanything import targets
from rlanything.config import Config, load
from rlanything.rewards.kind import kind_of
from rlanything.runs import build, families

GIVEN = ("model", "tokenizer")
"""What an engine gets from the program; everything else it gets from its section."""


def read(path: Path, root: Path, *, engine: bool = True) -> Config:
    """The configuration in `path`, checked. Raises `ConfigError`."""
    config = load(path)
    check(config, root, engine=engine)
    return config


def check(config: Config, root: Path, *, engine: bool = True) -> None:
    """Raise `ConfigError` unless every part that the configuration names can be made.

    The task family is constructed, so that its constructor can refuse its arguments. An engine needs a model, so
    only the names of its arguments are checked. That imports torch, which takes seconds: `engine` says whether to.
    """
    kind_of(config).check(families.family(config))
    build.prompts(config, root)
    if engine:
        arguments(config.engine, "engine")
    if engine and (config.train.loggers or config.train.callbacks):
        from rlanything.runs import trackers

        trackers.check_sections(config)


def arguments(section: dict[str, Any], name: str) -> None:
    """Raise `ConfigError` for a class that cannot be found or a key that its constructor does not take."""
    targets.named_arguments(section, targets.named_class(section, name), name, GIVEN)
