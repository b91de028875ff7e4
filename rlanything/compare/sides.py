"""From names to sides: runs and arms, projects and workspaces, revisions, in the order in which they are named."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from string import ascii_uppercase

from rlanything.buffer.views.find.places import run_names
from rlanything.compare.project import of_project
from rlanything.compare.revision import of_revision, resolve
from rlanything.compare.run.single import single
from rlanything.compare.side import Side, of_runs
from rlanything.core.errors import ConfigError
from rlanything.files.project import PARAMS, workspaces
from rlanything.rollouts.runs import NoRun
from rlanything.workspaces import places

MOST = 8
"""Sides of one comparison: more lines in a figure cannot be told apart."""


def sides(revisions: Sequence[str], names: Sequence[str], root: Path) -> list[Side]:
    """The sides, lettered, revisions first. Raises `ConfigError` with the nearest name."""
    count = len(revisions) + len(names)
    if not 2 <= count <= MOST:
        raise ConfigError(f"compare takes 2 to {MOST} names, not {count}")
    letters = iter(ascii_uppercase)
    recorded = [of_revision(next(letters), name, root) for name in revisions]
    return [*recorded, *(_side(next(letters), name, root) for name in names)]


def _side(letter: str, name: str, root: Path) -> Side:
    place = _project(name, root)
    by_path = (root / name / PARAMS).is_file()
    if place is not None and (by_path or not _is_run(name, root)):
        return of_project(letter, name, "a whole experiment", place)
    where, colon, run = name.partition(":")
    within = _project(where, root) if colon else None
    try:
        return of_runs(letter, single(run, within), name) if within else of_runs(letter, single(name, root))
    except NoRun as error:
        if not within and resolve(name, root) is not None:
            return of_revision(letter, name, root)
        if not within and run and resolve(where, root) is not None:
            return of_revision(letter, where, root, run)
        raise ConfigError(f"{error}. {_others(root)}") from None


def _project(name: str, root: Path) -> Path | None:
    """The folder of a project or workspace of that name; None where there is none."""
    if (root / name / PARAMS).is_file():
        return (root / name).resolve()
    return places.find(name, root) if name in workspaces(root) else None


def _is_run(name: str, root: Path) -> bool:
    """Whether an arm or a run has that name: in every command it comes before a workspace of the same name."""
    return any(name in (run, run.partition("/")[0]) for run in run_names(root))


def _others(root: Path) -> str:
    known = workspaces(root)
    return (
        f"Workspaces: {', '.join(known) or 'none'}. It is no folder of a project and no git revision either"
    )
