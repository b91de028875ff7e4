"""What can be refused before any work: class names, constructor arguments, prompt files, the arm's name."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any

from rlanything.config import Config, ConfigError, load, unknown
from rlanything.core.unittests import Examiner
from rlanything.stages import build

GIVEN = ("model", "tokenizer")
"""What an engine gets from the program; everything else it gets from its section."""


def read(path: Path, root: Path, *, engine: bool = True) -> Config:
    """The configuration in `path`, checked. Raises `ConfigError`."""
    config = load(path)
    check(config, root, engine=engine)
    return config


def check(config: Config, root: Path, *, engine: bool = True) -> None:
    """Raise `ConfigError` unless every part that the configuration names can be made.

    The task family is made for real, so that its constructor refuses what it cannot do. The engine can only be looked
    at before there is a model, and looking imports torch, which takes seconds: `engine` says whether to.
    """
    family = build.family(config)
    if config.judge.writes == "tests":
        build.examiner(family)
    elif isinstance(family, Examiner):
        raise ConfigError(
            f"judge.writes = 'votes': the reward model of {type(family).__name__} writes tests. An environment and a "
            "scale that go together have a file in experiments/setting/"
        )
    build.prompts(config, root)
    if engine:
        arguments(config.engine, "engine")


def arguments(section: dict[str, Any], name: str) -> None:
    """Raise `ConfigError` for a class that cannot be found or a key that its constructor does not take."""
    from hydra.utils import get_class

    try:
        parameters = inspect.signature(get_class(section["_target_"])).parameters
    except Exception as error:  # whatever importing the module raises
        raise ConfigError(f"{name}._target_ = {section['_target_']!r}: {error}") from None
    known = [key for key in parameters if key not in GIVEN]
    for key in section:
        if key not in (*build.NO_ARGUMENTS, *known):
            raise ConfigError(f"{name}.{key}: {unknown(key, known)}")
