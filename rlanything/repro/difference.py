"""Finds the first difference between two projects or two runs, in the order in which their files were made."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Protocol

from rlanything.buffer.views.find.places import RUNS, run_names
from rlanything.core.errors import ConfigError, unknown
from rlanything.files.project import PARAMS
from rlanything.repro.file_difference import Place, first_place

STAGES = ("data", "models", "runs", "labels", "evaluation", "report")
"""Folders of results, in the order in which the pipeline makes them."""
PROJECT = ("dvc.yaml", PARAMS)
"""Files that a folder with results has, if it is no run. Its data/ and models/ may be links to another folder's."""
_IN_RUN = (
    "buffer",
    "rollouts",
    "tests",
    "critics",
    "events.jsonl",
    "metrics.jsonl",
    "checkpoints",
    "dvclive",
)


class Tree(Protocol):
    """Files by their path from the tree's root."""

    def names(self) -> Sequence[PurePosixPath]:
        """Every file."""
        ...

    def read(self, path: PurePosixPath) -> bytes:
        """A file's content."""
        ...


@dataclass(frozen=True)
class Folder:
    """A tree on disk. only: the folders and files in it that are compared; empty: all."""

    root: Path
    only: tuple[str, ...] = ()

    def names(self) -> Sequence[PurePosixPath]:
        """Every file, without hidden ones."""
        places = [self.root / name for name in self.only] or [self.root]
        files = [
            p for place in places for p in ([place] if place.is_file() else place.rglob("*")) if p.is_file()
        ]
        found = [PurePosixPath(p.relative_to(self.root).as_posix()) for p in files]
        return [path for path in found if not any(part.startswith(".") for part in path.parts)]

    def read(self, path: PurePosixPath) -> bytes:
        """A file's content."""
        return (self.root / path).read_bytes()


@dataclass(frozen=True)
class Difference:
    """A file that differs, and the place in it. A file that only one tree has is a difference too."""

    path: PurePosixPath
    place: Place

    def __str__(self) -> str:
        at = "" if self.place.iteration is None else f"iteration {self.place.iteration}, "
        return f"{self.path}: {at}{self.place.where}\n  first:  {self.place.first}\n  second: {self.place.second}"


def first_difference(first: Tree, second: Tree) -> Difference | None:
    """The difference that was made first; None when the trees have the same files with the same bytes."""
    names = sorted({*first.names(), *second.names()}, key=_stage)
    one, two = set(first.names()), set(second.names())
    for _, group in _groups(names):
        found = [d for path in group if (d := _compare(path, first, second, path in one, path in two))]
        if found:
            return min(found, key=_order)
    return None


def named(name: str, root: Path) -> Path:
    """The folder that a name means: in the project, among its runs, or from the current folder, in this order.

    Raises `ConfigError` with the nearest run."""
    places = (root / name, root / RUNS / name, Path(name))
    found = next((place for place in places if place.is_dir()), None)
    if found is None:
        runs = run_names(root)
        hint = f"; as the name of a run it is {unknown(name.removeprefix(f'{RUNS}/'), runs)}" if runs else ""
        raise ConfigError(f"{name}: no such folder, neither in {root} nor in the current one{hint}")
    return found


def folders(first: Path, second: Path) -> tuple[Folder, Folder]:
    """Two folders to compare. In projects, workspaces and trials, only the outputs of the pipeline are compared."""
    project = all(any((of / name).is_file() for name in PROJECT) for of in (first, second))
    only = STAGES if project else ()
    return Folder(first, only), Folder(second, only)


def _compare(path: PurePosixPath, first: Tree, second: Tree, in_one: bool, in_two: bool) -> Difference | None:
    if not (in_one and in_two):
        words = ("there" if in_one else "missing", "there" if in_two else "missing")
        return Difference(path, Place("file", *words))
    a, b = first.read(path), second.read(path)
    return None if a == b else Difference(path, first_place(path, a, b))


def _groups(names: Iterable[PurePosixPath]) -> list[tuple[tuple[object, ...], list[PurePosixPath]]]:
    """Groups of paths that were made together: the folder of a stage, or in `runs` one run."""
    groups: dict[tuple[object, ...], list[PurePosixPath]] = {}
    for name in names:
        groups.setdefault(_stage(name)[:2], []).append(name)
    return list(groups.items())


def _stage(path: PurePosixPath) -> tuple[int, tuple[str, ...], PurePosixPath]:
    top = path.parts[0]
    run = path.parts[1:3] if top == "runs" else ()
    return STAGES.index(top) if top in STAGES else len(STAGES), run, path


def _order(found: Difference) -> tuple[float, int, PurePosixPath]:
    """Sort key: by iteration, then by the order of files in an iteration. Files of no iteration come last."""
    iteration = found.place.iteration
    kind = next(
        (k for k, name in enumerate(_IN_RUN) if name in found.path.parts and not _is_log(name, found)), None
    )
    rank = len(_IN_RUN) if kind is None else kind
    return (float("inf") if iteration is None else iteration, rank, found.path)


def _is_log(name: str, found: Difference) -> bool:
    """Whether the file is buffer/events.jsonl: it is in the folder of snapshots, but is written after the rollouts."""
    return name == "buffer" and found.path.name == "events.jsonl"
