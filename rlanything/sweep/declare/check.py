"""Checks of a sweep against the project, before any work: arms, keys and values that its trials could not run with."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rlanything.config import Config, parse
from rlanything.core.errors import ConfigError
from rlanything.planning import check, compose
from rlanything.planning.pipeline import Pipeline, look_up, trial_stages
from rlanything.stages.declared import STAGES
from rlanything.sweep.declare.extremes import corners, extremes
from rlanything.sweep.declare.parameters import Range, Value
from rlanything.sweep.declare.samplers import SAMPLERS
from rlanything.sweep.declare.starts import starts
from rlanything.sweep.declare.sweep import PAPER, Sweep, hydra_overrides

UNTYPED = ("env", "engine")
"""Sections whose keys have no declared type."""


def compose_base(sweep: Sweep, root: Path) -> dict[str, Any]:
    """The trials' common configuration. Raises `ConfigError`."""
    return compose.compose(hydra_overrides(sweep, {}, sweep.seeds), root)


def checked_base(sweep: Sweep, root: Path) -> dict[str, Any]:
    """The trials' common configuration, after every check of the sweep. Raises `ConfigError`."""
    base = compose_base(sweep, root)
    config = parse(base)
    _check_arms(sweep, config)
    check.check(config, root, engine=False)
    _check_integers(sweep, config)
    points = _check_space(sweep, base, root)
    _check_effects(sweep, [config, *points], root)
    found = starts(sweep, baseline_values(sweep, base))
    if SAMPLERS[sweep.sampler].baselines_inside and any(start.point is None for start in found):
        raise ConfigError(
            f"sampler = {sweep.sampler}: needs the paper's point and the default inside of the space; widen it, or "
            "use tpe"
        )
    return base


def baseline_values(sweep: Sweep, base: Mapping[str, Any]) -> dict[str, Value]:
    """The common configuration's value of every key of the space and of the paper's setting; without those of the
    latter that are null.
    """
    found = {key: look_up(base, key) for key in (*sweep.keys, *PAPER)}
    for key in sweep.keys:
        if found[key] is None:
            raise ConfigError(f"space: {key}: has no default value to compare with; give one in overrides")
    return {key: value for key, value in found.items() if value is not None}


def _check_arms(sweep: Sweep, config: Config) -> None:
    """Raise `ConfigError` for objectives and arms that a trial with `config` could not have."""
    sweep.check_measured(config)
    for place, name in enumerate(sweep.arms):
        source = config.arm(name).reward_from
        if source is not None and source not in sweep.arms[:place]:
            raise ConfigError(
                f"arms: {name!r} is judged by the reward model of {source!r} (reward_from), which a trial trains "
                f"itself: name it before, e.g. arms: [{source}, {name}]"
            )


def _check_space(sweep: Sweep, base: Mapping[str, Any], root: Path) -> list[Config]:
    """The configurations at the extremes. Raises `ConfigError` for a key or a value that cannot be set or run."""
    groups = compose.options(root)
    for key in sweep.keys:
        if key in groups:
            raise ConfigError(f"space: {key}: a group of files; sweep over the keys that its options set")
        if isinstance(look_up(base, key), (dict, list)):
            raise ConfigError(f"space: {key}: holds several values; sweep over one of them")
    try:  # Hydra knows all keys, and the nearest to an unknown one
        compose.compose(hydra_overrides(sweep, next(corners(sweep)), sweep.seeds), root)
    except ConfigError as error:
        raise ConfigError(f"space: {error}") from None
    return [_check_point(sweep, base, sets, root) for sets in extremes(sweep)]


def _check_point(sweep: Sweep, base: Mapping[str, Any], sets: Mapping[str, Value], root: Path) -> Config:
    data = copy.deepcopy(dict(base))
    for key, value in sets.items():
        section, _, name = key.rpartition(".")
        (look_up(data, section) if section else data)[name] = value
    try:
        config = parse(data)
        _check_arms(sweep, config)
        check.check(config, root, engine=False)
    except ConfigError as error:
        shown = ", ".join(f"{key} = {value}" for key, value in sets.items())
        raise ConfigError(f"space: {shown} cannot be run: {error}") from None
    return config


def _check_integers(sweep: Sweep, config: Config) -> None:
    """Raise `ConfigError` for a range with an end like 1.0 over a key that takes whole numbers."""
    typed = config.model_dump(by_alias=True)
    for key, parameter in sweep.space.items():
        whole = type(look_up(typed, key)) is int and key.partition(".")[0] not in UNTYPED
        if whole and isinstance(parameter, Range) and not parameter.whole:
            given = {k: v for k, v in parameter.model_dump(exclude_none=True).items() if isinstance(v, float)}
            shown = ", ".join(f"{k} = {v}" for k, v in given.items())
            raise ConfigError(f"space.{key}: {shown}: it takes whole numbers; write them as such, e.g. 1")


def _check_effects(sweep: Sweep, points: Sequence[Config], root: Path) -> None:
    """Raise `ConfigError` for a key on which no stage of a trial depends at any of `points`: all would be the same."""
    pipeline = Pipeline(root)
    arms = list(points[0].arms)
    names = {arm: _depends_on(pipeline, arm, points) for arm in arms}

    def changes(key: str, arms: Sequence[str]) -> bool:
        return any(f"{key}.".startswith(f"{name}.") for arm in arms for name in names[arm])

    for key in sweep.keys:
        if not changes(key, sweep.arms):
            others = [arm for arm in arms if changes(key, [arm])]
            where = f"; it changes {', '.join(others)}" if others else ""
            raise ConfigError(
                f"space: {key}: changes nothing in {', '.join(sweep.arms)}, so every trial would be the same{where}"
            )


def _depends_on(pipeline: Pipeline, arm: str, points: Sequence[Config]) -> set[str]:
    """The parameters on which the stages of a trial of `arm` depend. Switches of the arm can differ between points."""
    switches: dict[str, Config] = {}
    for point in points:
        columns = [dict(stage.arms(point).get(arm, {})) for stage in STAGES if stage.arms is not None]
        switches.setdefault(str(columns), point)
    return {
        name
        for point in switches.values()
        for stage in trial_stages([arm])
        for name in pipeline.params(stage, point.model_dump(mode="json", by_alias=True))
    }
