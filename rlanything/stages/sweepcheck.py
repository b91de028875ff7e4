"""What can be refused of a sweep before any work: arms, keys and values that its trials could not be run with."""

from __future__ import annotations

import copy
import itertools
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rlanything.config import Config, ConfigError, parse
from rlanything.stages import check, compose
from rlanything.stages.pipeline import Pipeline, look_up
from rlanything.stages.sweeptrial import overrides, stages
from rlanything.sweep import space
from rlanything.sweep.declare import PAPER, Range, Sweep, Value
from rlanything.sweep.study import starts

FREE = ("env", "engine")
"""Sections whose keys have no declared type."""


def checked(sweep: Sweep, root: Path) -> dict[str, Any]:
    """The trials' common configuration, once every end of the space is found to be valid. Raises `ConfigError`."""
    base = compose.compose(overrides(sweep, {}, sweep.seeds), root)
    config = parse(base)
    _check_trial(sweep, config)
    check.check(config, root, engine=False)
    _check_whole(sweep, config)
    _check_space(sweep, base, root)
    _check_used(sweep, base, root)
    found = starts(sweep, baseline(sweep, base))
    if sweep.sampler == "gp" and any(start.point is None for start in found):
        raise ConfigError(
            "sampler = gp: needs the paper's point and the default inside of the space; widen it, or use tpe"
        )
    return base


def baseline(sweep: Sweep, base: Mapping[str, Any]) -> dict[str, Value]:
    """The common configuration's value of every key of the space and of the paper's point."""
    found = {key: look_up(base, key) for key in (*sweep.keys, *PAPER)}
    for key, value in found.items():
        if value is None:
            raise ConfigError(f"space: {key}: has no value by default to compare with; give one in overrides")
    return found


def _check_trial(sweep: Sweep, config: Config) -> None:
    """Raise `ConfigError` for objectives and arms that a trial with `config` could not have."""
    sweep.check_measured(config)
    for place, name in enumerate(sweep.arms):
        source = config.arm(name).reward_from
        if source is not None and source not in sweep.arms[:place]:
            raise ConfigError(
                f"arms: {name!r} is judged by the reward model of {source!r} (reward_from), which a trial trains "
                f"itself: name it before, e.g. arms: [{source}, {name}]"
            )


def _check_space(sweep: Sweep, base: Mapping[str, Any], root: Path) -> None:
    """Raise `ConfigError` for a key that cannot be set, and for a value that cannot be run."""
    groups = compose.options(root)
    for key in sweep.keys:
        if key in groups:
            raise ConfigError(f"space: {key}: a group of files; sweep over the keys that its options set")
        if isinstance(look_up(base, key), (dict, list)):
            raise ConfigError(f"space: {key}: holds several values; sweep over one of them")
    try:
        compose.compose(overrides(sweep, next(space.corners(sweep)), sweep.seeds), root)
    except ConfigError as error:  # it knows all keys, and the nearest to one that is none
        raise ConfigError(f"space: {error}") from None
    each = (sets for name, parameter in sweep.space.items() for sets in space.ends(parameter, name))
    inside = (space.inside(parameter, name) for name, parameter in sweep.space.items())
    for sets in itertools.chain(each, inside, space.corners(sweep)):
        _check_point(sweep, base, sets)


def _check_point(sweep: Sweep, base: Mapping[str, Any], sets: Mapping[str, Value]) -> None:
    data = copy.deepcopy(dict(base))
    for key, value in sets.items():
        section, _, name = key.rpartition(".")
        (look_up(data, section) if section else data)[name] = value
    try:
        _check_trial(sweep, parse(data))
    except ConfigError as error:
        words = ", ".join(f"{key} = {value}" for key, value in sets.items())
        raise ConfigError(f"space: {words} cannot be run: {error}") from None


def _check_whole(sweep: Sweep, config: Config) -> None:
    """Raise `ConfigError` for a range with an end like 1.0 over a key that takes whole numbers."""
    typed = config.model_dump(by_alias=True)
    for key, parameter in sweep.space.items():
        whole = type(look_up(typed, key)) is int and key.partition(".")[0] not in FREE
        if whole and isinstance(parameter, Range) and not parameter.whole:
            given = {k: v for k, v in parameter.model_dump(exclude_none=True).items() if isinstance(v, float)}
            words = ", ".join(f"{k} = {v}" for k, v in given.items())
            raise ConfigError(f"space.{key}: {words}: it takes whole numbers; write them as such, e.g. 1")


def _check_used(sweep: Sweep, base: Mapping[str, Any], root: Path) -> None:
    """Raise `ConfigError` for a key that changes nothing of a trial: every point would be the same."""
    pipeline = Pipeline(root)
    for key in sweep.keys:
        if not _used(pipeline, base, key, sweep.arms):
            others = [arm for arm in base["arms"] if _used(pipeline, base, key, [arm])]
            where = f"; it changes {', '.join(others)}" if others else ""
            raise ConfigError(
                f"space: {key}: changes nothing in {', '.join(sweep.arms)}, so every trial would be the same{where}"
            )


def _used(pipeline: Pipeline, base: Mapping[str, Any], key: str, arms: Sequence[str]) -> bool:
    names = {name for stage in stages(arms) for name in pipeline.params(stage, base)}
    return any(f"{key}.".startswith(f"{name}.") for name in names)
