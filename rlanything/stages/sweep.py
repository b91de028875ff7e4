"""`rlanything sweep`: run a declared sweep to its end, alone or beside other workers, and publish what came out.

    <root>/.rla/sweeps/<name>-<key>/     the study, its trials, who works on what; goes on after any crash
    <root>/sweeps/<name>/                what is published, by one rename, when everything is finished

The key is a hash of everything that the trials have in common: configuration, code and inputs.
"""

from __future__ import annotations

import copy
import importlib.util
import itertools
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rlanything.config import ConfigError, parse
from rlanything.core.ids import content_id
from rlanything.stages import check, compose, sweepexperiments, sweepresult
from rlanything.stages.pipeline import Pipeline, digests, look_up
from rlanything.stages.sweeptrial import BEFORE, Inputs, overrides
from rlanything.stages.sweepworker import Worker
from rlanything.sweep import declare, space
from rlanything.sweep.board import Board
from rlanything.sweep.claims import Claims
from rlanything.sweep.claims import Worker as Process
from rlanything.sweep.declare import PAPER, Sweep, Value
from rlanything.sweep.study import SweepStudy, starts

FOLDER = Path(".rla") / "sweeps"


@dataclass(frozen=True)
class Options:
    """How a sweep is run; nothing of it changes a result."""

    workers: int = 2
    storage: str | None = None
    folder: Path | None = None
    experiments: bool = False


def run(path: Path, root: Path, params: Path, options: Options) -> None:
    """Work on the sweep in `path` until it is finished, then publish it. Raises `ConfigError`, `SweepError`."""
    sweep, name = declare.load(path), declare.name_of(path)
    _check_installed(sweep)
    if options.workers < 1:
        raise ConfigError(f"--workers {options.workers}: at least 1 trial at once")
    if options.experiments:
        sweepexperiments.check(root)
    base = checked(sweep, root)
    folder = options.folder or root / FOLDER
    inputs = Inputs.of(root, params, folder / "inputs")
    key = identity(sweep, base, inputs)
    place = folder / f"{name}-{key[:8]}"
    study = SweepStudy(f"{name}-{key[:8]}", sweep, baseline(sweep, base), place, options.storage)
    board = Board(study)

    def say(text: str) -> None:
        print(f"sweep {name}: {text}", file=sys.stderr, flush=True)

    before = sweepresult.stamp(root, name)
    Worker(board, inputs, Claims(place / "claims", Process.here()), options.workers, say).work()
    sweepresult.publish(board, path, root, before)
    say(f"{board.status({}, 1)}; results: {root / 'sweeps' / name}")
    if options.experiments:
        sweepexperiments.record(board, name, root, say)


def _check_installed(sweep: Sweep) -> None:
    """Raise `ConfigError` before any work when something is missing that the end of the work needs."""
    needs = {"plotly": "the page", "scipy": "samplers gp and qmc and pruner wilcoxon"}
    if sweep.sampler not in ("gp", "qmc") and sweep.pruner.kind != "wilcoxon":
        needs.pop("scipy")
    for module, reason in needs.items():
        if importlib.util.find_spec(module) is None:
            raise ConfigError(
                f"{module} is not installed; {reason} needs it: pip install 'rlanything[sweep]'"
            )


def show(path: Path, root: Path) -> None:
    """Print what the sweep would run; runs nothing. Raises `ConfigError`."""
    sweep, name = declare.load(path), declare.name_of(path)
    base = checked(sweep, root)
    print(
        f"sweep {name}: arms {', '.join(sweep.arms)}, {sweep.seeds} seeds, objectives {', '.join(sweep.objectives)}"
    )
    for parameter, distribution in space.distributions(sweep).items():
        print(f"  {parameter}: {distribution}")
    for number, start in enumerate(starts(sweep, baseline(sweep, base))):
        outside = "" if start.point is not None else "; not a point of the space"
        sets = ", ".join(f"{k} = {v}" for k, v in start.sets.items())
        print(f"trial {number} {start.label or 'grid'}: {sets}{outside}")
    budget = sweep.budget.model_dump(exclude_none=True)
    print(
        f"sampler {sweep.sampler}, pruner {sweep.pruner.kind}, budget {budget}, confirmed on {sweep.confirm} seeds"
    )


def checked(sweep: Sweep, root: Path) -> dict[str, Any]:
    """The trials' common configuration, once every end of the space is found to be valid. Raises `ConfigError`."""
    base = compose.compose(overrides(sweep, {}, sweep.seeds), root)
    config = parse(base)
    sweep.check_measured(config)
    check.check(config, root, engine=False)
    for arm in sweep.arms:
        config.arm(arm)
    _check_space(sweep, base, root)
    found = starts(sweep, baseline(sweep, base))
    if sweep.sampler == "gp" and any(start.point is None for start in found):
        raise ConfigError(
            "sampler = gp: needs the paper's point and the default inside of the space; widen it, or use tpe"
        )
    return base


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
    for sets in itertools.chain(each, space.corners(sweep)):
        _check_point(sweep, base, sets)


def _check_point(sweep: Sweep, base: Mapping[str, Any], sets: Mapping[str, Value]) -> None:
    data = copy.deepcopy(dict(base))
    for key, value in sets.items():
        section, _, name = key.rpartition(".")
        (look_up(data, section) if section else data)[name] = value
    try:
        sweep.check_measured(parse(data))
    except ConfigError as error:
        words = ", ".join(f"{key} = {value}" for key, value in sets.items())
        raise ConfigError(f"space: {words} cannot be run: {error}") from None


def baseline(sweep: Sweep, base: Mapping[str, Any]) -> dict[str, Value]:
    """The common configuration's value of every key of the space and of the paper's point."""
    found = {key: look_up(base, key) for key in (*sweep.keys, *PAPER)}
    for key, value in found.items():
        if value is None:
            raise ConfigError(f"space: {key}: has no value by default to compare with; give one in overrides")
    return found


def identity(sweep: Sweep, base: Mapping[str, Any], inputs: Inputs) -> str:
    """Names what all trials have in common, so that trials of different code or data never meet in one study."""
    pipeline: Pipeline = inputs.pipeline
    stages = [*BEFORE, *(f"{stage}@{arm}" for arm in sweep.arms for stage in ("train", "evaluate"))]
    place = inputs.place(parse(base))
    made = [p for n in ("data", "models") for p in sorted((place / n).rglob("*")) if p.is_file()]
    own = digests(made) if place == inputs.root else []
    common = {k: v for k, v in base.items() if k != "scale"}
    return content_id({"config": common, "files": pipeline.digest(stages, base), "inputs": own})
