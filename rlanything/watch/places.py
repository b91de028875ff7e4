"""Where something may run: the project, its workspaces, trials of sweeps, checks. Each is a folder with a pipeline."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from rlanything.buffer.views.find.runs import natural
from rlanything.config import Config, load
from rlanything.core.errors import RLAnythingError
from rlanything.files.project import PARAMS, PRIVATE
from rlanything.stages import TRAIN, of_arm
from rlanything.watch import left, seeds, stages
from rlanything.watch.holders import LOCKS, holder, lock_of
from rlanything.watch.seeds import Seed
from rlanything.watch.stages import StageState

PROJECT = "."
DVC_LOCK = Path(".dvc", "tmp", "lock")
"""Held while DVC itself works: it gives it up while a stage runs, and tries for seconds to get it again."""
DEEPEST = 4
"""Folders below .rla/ that are looked through: .rla/sweeps/<name>/trials/<number> is the deepest place."""
_SKIPPED = frozenset(
    {"live", "locks", "timings", "logs", "replies", "iterations", "runs", "data", "models", "claims"}
)
_MOST = 5000
"""Places that are looked at; a sweep has a folder for each trial."""


@dataclass(frozen=True)
class Place:
    """A folder with a pipeline. name: from the project, `.` for the project itself. problem: why there are no stages.

    in_progress: whether a process works here. whole: whether a pipeline is run here from its first stage to its last
    (`dvc repro`), and not single stages, as in a trial.
    """

    name: str
    root: Path
    seeds: tuple[Seed, ...]
    stages: tuple[StageState, ...]
    in_progress: bool
    whole: bool
    problem: str = ""


def roots(project: Path) -> Iterator[tuple[str, Path]]:
    """(name, folder) of every place: the project first, then what lies in its .rla/."""
    yield PROJECT, project
    for count, folder in enumerate(_below(project / PRIVATE, DEEPEST)):
        if count > _MOST:
            return
        yield folder.relative_to(project / PRIVATE).as_posix(), folder


def _below(folder: Path, depth: int) -> Iterator[Path]:
    """The places below a folder. Links are not followed: they lead to other places."""
    if depth == 0:
        return
    inside: list[Path] = []
    with suppress(OSError):
        inside = sorted(folder.iterdir())
    for path in inside:
        # These functions say no of what cannot be looked into, so that it hides no other folder.
        if os.path.islink(path) or not os.path.isdir(path):
            continue
        if os.path.isdir(path / PRIVATE) or os.path.isfile(path / PARAMS):
            yield path  # whatever its name: a workspace may be called `data`
        elif path.name not in _SKIPPED:
            yield from _below(path, depth - 1)


def is_busy(root: Path) -> bool:
    """Whether a process holds a lock of the place: of a command, of a seed, or DVC's, which it has between stages."""
    with suppress(OSError):
        return any(holder(path) for path in _locks(root))
    return False


def _locks(root: Path) -> Iterator[Path]:
    yield from (root / LOCKS).glob("*")
    yield root / DVC_LOCK
    yield from (root / PRIVATE / "live").glob("*/*/seed-*/lock")


def read(name: str, root: Path) -> Place:
    """Everything about a place."""
    config, problem = _config(root)
    found = stages.states(config, root) if config is not None else []
    live, placed = in_training(root), finished(root)
    count, workers = (config.train.seeds, config.train.workers) if config is not None else (1, 1)
    count, workers = min(count, seeds.MOST_SEEDS), min(workers, seeds.MOST_SEEDS)
    timed = left.with_left(found, [*live, *placed], count, workers)
    return Place(
        name,
        root,
        (*live, *placed),
        tuple(timed),
        is_busy(root),
        (root / "dvc.yaml").is_file(),
        problem,
    )


def in_training(root: Path) -> list[Seed]:
    """The seeds in live folders. Of several trainings of an arm: the one that runs, or else the newest."""
    arms: dict[str, Path] = {}
    with suppress(OSError):  # a training that ends renames its folder while this looks
        for folder in sorted((root / PRIVATE / "live").glob("[!.]*/*"), key=_busy_then_newest):
            arms[folder.name] = folder
    found: list[Seed] = []
    for arm, place in sorted(arms.items()):
        runs = holder(lock_of(root, of_arm(TRAIN, arm))) is not None
        folders = [folder for folder in place.glob("seed-*") if folder.is_dir()]
        if runs:
            folders += [place / f"seed-{n}" for n in range(seeds.declared(place))]
        found += [seeds.live(root, folder, runs) for folder in sorted({*folders}, key=natural)]
    return found


def _busy_then_newest(folder: Path) -> tuple[bool, float]:
    with suppress(OSError):
        return any(holder(lock) for lock in folder.glob("seed-*/lock")), folder.stat().st_mtime
    return False, 0.0


def finished(root: Path) -> list[Seed]:
    """The seeds below runs/."""
    folders = sorted((root / "runs").glob("*/seed-*"), key=natural)
    return [seeds.finished(root, folder) for folder in folders if (folder / "metrics.jsonl").is_file()]


def _config(root: Path) -> tuple[Config | None, str]:
    """The configuration of a place, or why there is none that can be read."""
    path = root / PARAMS
    if not path.is_file():
        return None, ""
    try:
        return load(path), ""
    except (RLAnythingError, OSError, RecursionError) as error:
        return None, str(error).splitlines()[0]
