"""The runs that a name means, and their whole configuration."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rlanything.buffer.views.find.places import RUNS
from rlanything.config import Config, parse
from rlanything.core.errors import ConfigError
from rlanything.files.project import PARAMS
from rlanything.files.yaml_file import read_mapping
from rlanything.repro import run_rules
from rlanything.rollouts import runs
from rlanything.rollouts.origin import origin_of
from rlanything.rollouts.runs import NamedRun

_SEED = re.compile(r"seed-(\d{1,9})")
_MERGED = ("train", "evaluate", "arms")
"""Sections of which a run in training keeps a part; of the others it keeps all or nothing."""


def named(name: str, root: Path) -> list[NamedRun]:
    """The runs of one arm that `name` means; an arm means all of its seeds. Raises `ConfigError` with the nearest."""
    first, names = runs.find(name, root)
    folders = [_folder(one, root) for one in names]
    arms = sorted({folder.parent.name for folder in folders})
    if first.finished and len(arms) > 1:
        raise ConfigError(f"{name}: holds runs of several arms ({', '.join(arms)}); name one of them")
    beside = [folder for folder in folders if folder.parent == first.stored.folder.parent]
    return sorted((runs.open_run(folder) for folder in beside or [first.stored.folder]), key=seed_of)


def seed_of(run: NamedRun) -> int:
    """The number of its seed. Raises `ConfigError` for a folder that is named otherwise."""
    found = _SEED.fullmatch(run.stored.folder.name)
    if found is None:
        raise ConfigError(f"{run.stored.folder}: not the folder of a run (<arm>/seed-<n>)")
    return int(found[1])


def config_of(found: Sequence[NamedRun]) -> Config:
    """The configuration of runs of one arm, with this arm alone. Raises `ConfigError`."""
    run, arm = found[0], found[0].arm
    config = run_rules.own(run.stored.folder).config if run.finished else _live(run)
    return config.model_copy(update={"arms": {arm: config.arm(arm)}})


def _live(run: NamedRun) -> Config:
    """That of the project, with everything that decides the run as the run keeps it."""
    own = origin_of(run).config
    data: dict[str, Any] = read_mapping(run.root / PARAMS)
    for section, value in own.items():
        if section in data:
            merged = section in _MERGED and isinstance(value, dict) and isinstance(data[section], dict)
            data[section] = {**data[section], **value} if merged else value
    return parse(data)


def _folder(name: str, root: Path) -> Path:
    return next(path for path in (root / RUNS / name, root / name) if path.is_dir())
