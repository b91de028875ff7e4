"""What all checks have in common: their names, and where and how their results are published."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

from rlanything.core.errors import ConfigError
from rlanything.files import atomic, locks
from rlanything.files.atomic import own_folder
from rlanything.files.project import DECLARED, PRIVATE

PLACE = "checks"
"""The folder of the project that holds the results of each check, by its name."""
HIDDEN = ".*"
"""Names that are no results: what a killed process left of a file."""
Declared = TypeVar("Declared")


def check_declaration(file: Path, root: Path, workers: int) -> None:
    """Raise `ConfigError` before any work: for less than one worker, for results that are a link, and for a declaration
    whose file name can be no check of the project at `root`.
    """
    if workers < 1:
        raise ConfigError(f"--workers {workers}: at least 1 at once")
    if not DECLARED.fullmatch(file.stem):
        raise ConfigError(
            f"{file}: a check is named by its file; use lower-case letters, digits, '-' and '_', e.g. ladder.yaml"
        )
    own_folder(root / PLACE / file.stem)


@contextmanager
def published(name: str, root: Path) -> Iterator[Path]:
    """An empty folder to write into; it becomes the published results of the check `name` when the block ends well.

    Raises `ConfigError` while another process publishes this check, and `OSError`.
    """
    place, held = root / PLACE / name, root / PRIVATE / "locks"
    atomic.make(held)
    with (
        locks.held(held / f"publish-{name}", f"{place}: another process publishes it"),
        atomic.whole(place) as folder,
    ):
        yield folder


def copy_evaluations(workspace: Path, folder: Path) -> None:
    """Copy what was measured in a workspace beside the results that follow from it."""
    hidden = shutil.ignore_patterns(HIDDEN)
    shutil.copytree(workspace / "evaluation", folder / "evaluation", ignore=hidden)


def keep(file: Path, declared: Declared, load: Callable[[Path], Declared], place: Path) -> None:
    """Copy a declaration to `place`, beside the results of what it declares.

    declared: what was read of it before the check ran. load: what reads it.
    Raises `ConfigError` where the file does not declare that any more.
    """
    try:
        shutil.copyfile(file, place)
        same = load(place) == declared
    except (OSError, ConfigError):
        same = False
    if not same:
        raise ConfigError(
            f"{file}: the declaration was changed while the check ran, so it is not that of the results. Undo the "
            "change, and the same command goes on"
        )
