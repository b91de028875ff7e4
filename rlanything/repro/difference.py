"""The first difference between two versions of a project's results or of a run: first in the order things happened."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Protocol

from rlanything.core.errors import ConfigError
from rlanything.repro.file_difference import Place, first_place

STAGES = ("data", "models", "runs", "labels", "evaluation", "report")
"""Folders of results in the order in which the pipeline makes them."""
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
    """A tree on disk; `only`: the folders and files of it that count (empty: all)."""

    root: Path
    only: tuple[str, ...] = ()

    def names(self) -> Sequence[PurePosixPath]:
        """Every file, hidden ones left out."""
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
    """A file that differs, and where. A file that only one tree has is a difference, too."""

    path: PurePosixPath
    place: Place

    def __str__(self) -> str:
        at = "" if self.place.iteration is None else f"iteration {self.place.iteration}, "
        return f"{self.path}: {at}{self.place.where}\n  first:  {self.place.first}\n  second: {self.place.second}"


def first_difference(first: Tree, second: Tree) -> Difference | None:
    """The difference that came about first; None when the trees have the same files with the same bytes."""
    names = sorted({*first.names(), *second.names()}, key=_stage)
    one, two = set(first.names()), set(second.names())
    for _, group in _groups(names):
        found = [d for path in group if (d := _compare(path, first, second, path in one, path in two))]
        if found:
            return min(found, key=_order)
    return None


def folders(first: Path, second: Path) -> tuple[Folder, Folder]:
    """Two folders to compare: of projects only what the pipeline makes. Raises `ConfigError` for what is no folder."""
    for path in (first, second):
        if not path.is_dir():
            raise ConfigError(f"{path}: no such folder")
    only = tuple(name for name in STAGES if (first / name).is_dir() or (second / name).is_dir())
    project = (first / "dvc.yaml").is_file() and (second / "dvc.yaml").is_file()
    return Folder(first, only if project else ()), Folder(second, only if project else ())


def _compare(path: PurePosixPath, first: Tree, second: Tree, in_one: bool, in_two: bool) -> Difference | None:
    if not (in_one and in_two):
        words = ("there" if in_one else "missing", "there" if in_two else "missing")
        return Difference(path, Place("file", *words))
    a, b = first.read(path), second.read(path)
    return None if a == b else Difference(path, first_place(path, a, b))


def _groups(names: Iterable[PurePosixPath]) -> list[tuple[tuple[object, ...], list[PurePosixPath]]]:
    """Paths by what was made at once: a stage's folder, of `runs` one run."""
    groups: dict[tuple[object, ...], list[PurePosixPath]] = {}
    for name in names:
        groups.setdefault(_stage(name)[:2], []).append(name)
    return list(groups.items())


def _stage(path: PurePosixPath) -> tuple[int, tuple[str, ...], PurePosixPath]:
    top = path.parts[0]
    run = path.parts[1:3] if top == "runs" else ()
    return STAGES.index(top) if top in STAGES else len(STAGES), run, path


def _order(found: Difference) -> tuple[float, int, PurePosixPath]:
    """By iteration, then by what comes first in one; what belongs to no iteration comes last."""
    iteration = found.place.iteration
    kind = next(
        (k for k, name in enumerate(_IN_RUN) if name in found.path.parts and not _is_log(name, found)), None
    )
    rank = len(_IN_RUN) if kind is None else kind
    return (float("inf") if iteration is None else iteration, rank, found.path)


def _is_log(name: str, found: Difference) -> bool:
    """buffer/events.jsonl lies among the snapshots and is written after the rollouts."""
    return name == "buffer" and found.path.name == "events.jsonl"
