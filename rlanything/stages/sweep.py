"""`rlanything sweep`: run a declared sweep to its end, alone or beside other workers, and publish what came out.

    <root>/.rla/sweeps/<name>-<key>/     the study, its trials, who works on what; goes on after any crash
    <root>/sweeps/<name>/                what is published, by one rename, when everything is finished

The key is a hash of everything that the trials have in common: configuration, code and inputs.
"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rlanything.config import ConfigError, parse
from rlanything.core.ids import content_id
from rlanything.stages import sweepexperiments, sweepresult
from rlanything.stages.pipeline import Pipeline, digests
from rlanything.stages.sweepcheck import baseline, checked
from rlanything.stages.sweepguard import guard
from rlanything.stages.sweepkey import Key
from rlanything.stages.sweeptrial import Inputs, stages
from rlanything.stages.sweepworker import Worker
from rlanything.sweep import declare, space
from rlanything.sweep.board import Board
from rlanything.sweep.claims import Claims
from rlanything.sweep.claims import Worker as Process
from rlanything.sweep.declare import Sweep
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
    check = guard(sweep, inputs, Key.of(sweep, base, inputs))
    Worker(board, inputs, Claims(place / "claims", Process.here()), options.workers, say, check).work()
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


def identity(sweep: Sweep, base: Mapping[str, Any], inputs: Inputs) -> str:
    """Names what all trials have in common, so that trials of different code or data never meet in one study."""
    pipeline: Pipeline = inputs.pipeline
    place = inputs.place(parse(base))
    made = [p for n in ("data", "models") for p in sorted((place / n).rglob("*")) if p.is_file()]
    own = digests(made) if place == inputs.root else []
    common = {k: v for k, v in base.items() if k != "scale"}
    return content_id({"config": common, "files": pipeline.digest(stages(sweep.arms), base), "inputs": own})
