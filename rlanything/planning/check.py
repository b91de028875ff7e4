"""Checks before any work starts: class names, constructor arguments and prompt files of the configuration.

A check makes no object of a class that is not the project's own.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rlanything import targets
from rlanything.config import Config, load
from rlanything.core.types import Engine, TaskFamily
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

    A task family of the project is constructed, so that its constructor can refuse its arguments. Of one from
    elsewhere, of engines, loggers and callbacks only the class and the names of the arguments are checked. That
    imports torch, which takes seconds: `engine` says whether to.
    """
    for name, section in config.named().items():
        targets.permit(section, name)
    arguments(config.env, "env", TaskFamily)
    if targets.is_ours(config.env):
        families.family(config)
    build.prompts(config, root)
    if engine:
        arguments(config.engine, "engine", Engine)
    if engine and (config.train.loggers or config.train.callbacks):
        from rlanything.runs import trackers

        trackers.check_sections(config)


def arguments(section: dict[str, Any], name: str, of: type) -> None:
    """Raise `ConfigError` for a class that is not `of`, or a key that its constructor does not take."""
    given = GIVEN if of is Engine else ()
    targets.named_arguments(section, targets.named_class(section, name, of), name, given)
