"""What DVC reads in a project's dvc.yaml, and what its dvc.lock says of it."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path

from pydantic import BaseModel, ValidationError

from rlanything.buffer.storage import START
from rlanything.core.errors import ConfigError
from rlanything.core.records.forms import first_error
from rlanything.files.project import PARAMS
from rlanything.files.reader import FileError
from rlanything.files.yaml_file import mapping, read_mapping


@dataclass(frozen=True)
class Pipeline:
    """A dvc.yaml with its templates filled."""

    stages: frozenset[str]
    """Names, e.g. `train@full`."""
    needs: tuple[str, ...]
    """The files and folders in the project that stages read and that no stage makes, by their path from `root`."""


class Output(BaseModel):
    """What a dvc.lock says of an output."""

    path: str
    md5: str
    nfiles: int = 1


class _Stage(BaseModel):
    outs: list[Output] = []


class _Lock(BaseModel):
    stages: dict[str, _Stage] = {}


@dataclass(frozen=True)
class Locked:
    """The outputs in a dvc.lock."""

    outputs: Mapping[str, Output]
    """By their path."""
    former: tuple[str, ...]
    """Outputs of stages that the pipeline no longer has. DVC keeps their entries."""


def read_pipeline(root: Path) -> Pipeline:
    """The pipeline of the project in `root`. Raises `ConfigError` where DVC cannot read it."""
    from dvc.exceptions import DvcException
    from dvc.repo import Repo

    try:
        with Repo(str(root)) as repo:
            stages = repo.stage.load_all(str(root / "dvc.yaml"))
    except DvcException as error:
        raise ConfigError(f"{root / 'dvc.yaml'}: {' '.join(str(error).split())}") from None
    made = {Path(out.fs_path) for stage in stages for out in stage.outs}
    read = {Path(dep.fs_path) for stage in stages for dep in stage.deps if dep.is_in_repo}
    loose = {path for path in [*read, *_start(root)] if not made & {path, *path.parents}}
    inside = (path.relative_to(root).as_posix() for path in loose if path.is_relative_to(root))
    return Pipeline(frozenset(stage.name for stage in stages), tuple(sorted(inside)))


def _start(root: Path) -> list[Path]:
    """The buffer that `tasks.start` names, and the snapshots that it may be based on. In dvc.yaml it is a parameter."""
    params = root / PARAMS
    tasks = read_mapping(params).get("tasks") if params.is_file() else None
    named = tasks.get("start") if isinstance(tasks, dict) else None
    if not isinstance(named, str):
        return []
    place = Path(os.path.normpath(root / named))  # it may begin with `..`
    return [place, *(base for folder in place.parents[:3] if (base := folder / START).is_file())]


def read_lock(path: Path, text: str, stages: Collection[str]) -> Locked:
    """The outputs in a dvc.lock; `stages`: those that the pipeline has.

    text: the content of `path`. Raises `FileError` for anything but what DVC writes."""
    try:
        found = _Lock.model_validate(mapping(path, text)).stages
    except ValidationError as error:
        raise FileError(f"{path}: {first_error(error)}") from None
    outputs = {out.path: out for name, stage in found.items() if name in stages for out in stage.outs}
    every = {out.path for stage in found.values() for out in stage.outs}
    return Locked(outputs, tuple(sorted(every - outputs.keys())))
