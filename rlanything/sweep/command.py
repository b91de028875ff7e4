"""`rlanything sweep`: work on a declared sweep until it is finished, alone or beside other workers, and publish it.

    <root>/.rla/sweeps/<name>-<key>/     the study, its trials and claims; the same command goes on after any crash
    <root>/sweeps/<name>/                what is published at the end

`key` is a hash of everything that the trials have in common (`trials.key`).
"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from rlanything.core.errors import ConfigError
from rlanything.core.printable import counted, safe, safe_lines
from rlanything.files.atomic import own_folder
from rlanything.files.project import PRIVATE
from rlanything.sweep.declare import space, words
from rlanything.sweep.declare.check import baseline_values, checked_base
from rlanything.sweep.declare.file import load_sweep, sweep_name
from rlanything.sweep.declare.samplers import SAMPLERS
from rlanything.sweep.declare.starts import starts
from rlanything.sweep.errors import SweepError
from rlanything.sweep.results import experiments
from rlanything.sweep.results.document import TO_DEFAULT, config_command, of_the_sweep
from rlanything.sweep.results.publish import publish, published_folder, replaces_nothing_else, stamp
from rlanything.sweep.study.storage import storage_errors
from rlanything.sweep.study.study import SweepStudy
from rlanything.sweep.trials.board import Board
from rlanything.sweep.trials.claims import Claims
from rlanything.sweep.trials.earlier import with_other_seeds
from rlanything.sweep.trials.inputs import Inputs
from rlanything.sweep.trials.key import Key, check_unchanged, other_study
from rlanything.sweep.trials.status import status_line
from rlanything.sweep.trials.worker import Worker

FOLDER = Path(PRIVATE, "sweeps")


@dataclass(frozen=True)
class Options:
    """How a sweep is run; none of it changes a result."""

    workers: int = 2
    storage: str | None = None
    folder: Path | None = None
    experiments: bool = False


def run_sweep(path: Path, root: Path, params: Path, options: Options) -> None:
    """Work on the sweep in `path` until it is finished, then publish it. Raises `ConfigError`, `SweepError`.

    Args:
        path: the sweep file.
        root: the project.
        params: the project's configuration.
        options: see `Options`.
    """
    sweep, name = load_sweep(path), sweep_name(path)
    if importlib.util.find_spec("plotly") is None:
        raise ConfigError("plotly is not installed; the page needs it: pip install 'rlanything[sweep]'")
    if options.workers < 1:
        raise ConfigError(f"--workers {options.workers}: at least 1 trial at once")
    own_folder(published_folder(root, name))
    if options.experiments:
        experiments.baseline_commit(root)
    base = checked_base(sweep, root)
    folder = options.folder or root / FOLDER
    inputs = Inputs.of(root, params, folder / "inputs")
    key = Key.of(sweep.arms, base, inputs)
    place = folder / f"{name}-{key.short}"

    def say(text: str) -> None:
        print(safe_lines(f"sweep {name}: {text}"), file=sys.stderr, flush=True)

    with storage_errors(options.storage):
        earlier = with_other_seeds(folder, name, key, options.storage)
        points = []
        if earlier is not None:
            points = earlier.points(sweep)
            say(earlier.announcement(points))
        elif (other := other_study(folder, name, key)) is not None:
            say(other)
        study = SweepStudy(place.name, sweep, baseline_values(sweep, base), place, options.storage, points)
        board = Board(study, earlier)
        key.write(place)
        worker = Worker(
            board, inputs, Claims(place / "claims"), options.workers, say,
            lambda: check_unchanged(sweep, inputs, key),
        )  # fmt: skip
        _work(worker, path, root, say)
        if options.experiments:
            experiments.record(board, name, root, say)


def _work(worker: Worker, path: Path, root: Path, say: Callable[[str], None]) -> None:
    """Work to the end and publish. A `SweepError` publishes what is finished, unless that replaces another study."""
    board, before = worker.board, stamp(root, path.stem)
    place = published_folder(root, path.stem)
    if not replaces_nothing_else(board, root, path.stem):
        say(f"{place} has the results of another study; they are replaced when this one is finished")
    try:
        worker.work()
    except SweepError:
        if replaces_nothing_else(board, root, path.stem):
            publish(board, path, root, before)
        else:
            say(f"{place} keeps the results of another study")
        raise
    publish(board, path, root, before)
    say(f"{status_line(board, {}, 1)}; results: {place}")
    if (command := config_command(board)) is not None:
        say(f"{TO_DEFAULT}: {command}{of_the_sweep(board.sweep)}")


def print_sweep(path: Path, root: Path) -> None:
    """Print what the sweep would run; runs nothing. Raises `ConfigError`."""
    sweep, name = load_sweep(path), sweep_name(path)
    base = checked_base(sweep, root)
    arms, objectives = ", ".join(sweep.arms), ", ".join(sweep.objectives)
    seeds = counted(sweep.seeds, "seed")
    lines = [f"sweep {name}: arms {arms}, {seeds}, objectives {objectives} ({sweep.measured_by})"]
    for parameter, distribution in space.distributions(sweep).items():
        lines.append(f"  {parameter}: {words.drawn(distribution)}")
    first = starts(sweep, baseline_values(sweep, base))
    for number, start in enumerate(first):
        outside = "" if start.point is not None else "; not a point of the space"
        sets = ", ".join(f"{k} = {v}" for k, v in start.sets.items())
        lines.append(f"trial {number} {start.label or 'grid'}: {sets}{outside}")
    confirmed = (
        f"confirmed on {counted(sweep.confirm, 'seed')}" if sweep.confirm else "not confirmed on fresh seeds"
    )
    budget = words.until(sweep.budget, len(first) if SAMPLERS[sweep.sampler].every_point else None)
    lines.append(f"sampler {sweep.sampler}, pruner {sweep.pruner.kind}, budget {budget}, {confirmed}")
    print("\n".join(map(safe, lines)))
