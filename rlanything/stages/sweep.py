"""`rlanything sweep`: run a declared sweep to its end, alone or beside other workers, and publish what came out.

    <root>/.rla/sweeps/<name>-<key>/     the study, its trials, who works on what; goes on after any crash
    <root>/sweeps/<name>/                what is published, by one rename, at the end

The key stands for everything that the trials have in common (`sweepkey`).
"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from optuna.exceptions import StorageInternalError
from sqlalchemy.exc import SQLAlchemyError

from rlanything.config import ConfigError
from rlanything.stages import sweepexperiments, sweepkey, sweepresult
from rlanything.stages.sweepcheck import baseline, checked
from rlanything.stages.sweepguard import guard
from rlanything.stages.sweepkey import Key
from rlanything.stages.sweeptrial import Inputs
from rlanything.stages.sweepworker import SweepError, Worker
from rlanything.sweep import declare, space
from rlanything.sweep.board import Board
from rlanything.sweep.claims import Claims
from rlanything.sweep.claims import Worker as Process
from rlanything.sweep.declare import Sweep
from rlanything.sweep.study import SweepStudy, refused, starts

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
    key = Key.of(sweep, base, inputs)
    place = folder / f"{name}-{key.short}"

    def say(text: str) -> None:
        print(f"sweep {name}: {text}", file=sys.stderr, flush=True)

    other = sweepkey.warning(folder, name, key)
    if other is not None:
        say(other)
    with storage_errors(options.storage):
        board = Board(SweepStudy(place.name, sweep, baseline(sweep, base), place, options.storage))
        key.write(place)
        claims = Claims(place / "claims", Process.here())
        worker = Worker(board, inputs, claims, options.workers, say, guard(sweep, inputs, key))
        _work(worker, path, root, say)
        if options.experiments:
            sweepexperiments.record(board, name, root, say)


def _work(worker: Worker, path: Path, root: Path, say: Callable[[str], None]) -> None:
    """Work to the end and publish.

    Where the end is a `SweepError`, what is finished is published too, unless the results of another study are there.
    """
    board, before = worker.board, sweepresult.stamp(root, path.stem)
    try:
        worker.work()
    except SweepError:
        if sweepresult.replaces(board, root, path.stem):
            sweepresult.publish(board, path, root, before)
        else:
            say(f"{root / sweepresult.RESULTS / path.stem} keeps the results of an earlier study")
        raise
    sweepresult.publish(board, path, root, before)
    say(f"{board.status({}, 1)}; results: {root / sweepresult.RESULTS / path.stem}")


@contextmanager
def storage_errors(url: str | None) -> Iterator[None]:
    """What a database refuses in the middle of the work leaves the block as `SweepError`."""
    try:
        yield
    except (StorageInternalError, SQLAlchemyError) as error:
        raise SweepError(refused(url, error)) from error


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
