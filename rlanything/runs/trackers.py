"""Lightning loggers and callbacks from the configuration: `train.loggers` and `train.callbacks`, each by `_target_`.

The record of a run is its files. A logger gets a copy of every iteration's metrics and changes no result.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from lightning.pytorch import Callback
from lightning.pytorch.loggers import Logger

from rlanything import targets
from rlanything.config import Config
from rlanything.files.project import PRIVATE

FOLDER = Path(PRIVATE, "logs")
"""Default `save_dir` of loggers, below the project's root."""

Section = Mapping[str, Any]


def check_sections(config: Config) -> None:
    """Raise `ConfigError` for a class that is not a logger or callback, or for an argument that it does not take."""
    for key, section in config.train.loggers.items():
        _class(section, f"train.loggers.{key}", Logger)
    for key, section in config.train.callbacks.items():
        _class(section, f"train.callbacks.{key}", Callback)


def make_loggers(config: Config, root: Path, arm: str, seed: int) -> list[Logger]:
    """One logger for every entry of `train.loggers`, for one seed of an arm.

    `{arm}`, `{seed}` and `{root}`, the project's folder, are replaced in a text. A class that takes `save_dir` gets the
    folder <save_dir>/<arm>/seed-<seed>. Raises `ConfigError` for a class that is not a logger, or for an argument that
    it does not take.
    """
    names = {"{arm}": arm, "{seed}": str(seed), "{root}": str(root.resolve())}
    made = []
    for key, section in config.train.loggers.items():
        name = f"train.loggers.{key}"
        cls = _class(section, name, Logger)
        own = {k: _replaced(v, names) for k, v in section.items()}
        if "save_dir" in inspect.signature(cls).parameters:
            folder = root / (own.get("save_dir") or FOLDER) / arm / f"seed-{seed}"
            own["save_dir"] = str(folder)
        logger: Logger = targets.instantiate(own, name, Logger)
        made.append(logger)
    return made


def make_callbacks(config: Config) -> list[Callback]:
    """One callback for every entry of `train.callbacks`. Raises `ConfigError` like `make_loggers`."""
    return [
        targets.instantiate(dict(section), f"train.callbacks.{key}", Callback)
        for key, section in config.train.callbacks.items()
    ]


def hyperparameters(config: Config, arm: str, seed: int) -> dict[str, Any]:
    """The settings of a run for a tracker: the configuration without `train.loggers`, with this arm only."""
    data = config.model_dump(mode="json", by_alias=True, exclude={"arms": True, "train": {"loggers"}})
    return {
        **data,
        "arm": {"name": arm, **config.arm(arm).model_dump()},
        "seed": {"all": config.seed, "run": seed},
    }


def _class(section: Section, name: str, of: type) -> type:
    """The class that a section names. Raises `ConfigError` for an argument that it does not take."""
    cls = targets.named_class(section, name, of)
    targets.named_arguments(section, cls, name)
    return cls


def _replaced(value: Any, names: Mapping[str, str]) -> Any:
    """A value with the placeholders in its texts filled in."""
    if isinstance(value, Mapping):
        return {key: _replaced(item, names) for key, item in value.items()}
    if isinstance(value, list):
        return [_replaced(item, names) for item in value]
    if not isinstance(value, str):
        return value
    for placeholder, text in names.items():
        value = value.replace(placeholder, text)
    return value
