"""A copy of a project in which the pipeline runs from scratch, without cache, models and data."""

from __future__ import annotations

import hashlib
import os
import platform
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Callable
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from typing import Any

from rlanything.buffer.views.find.revision import known_revisions, nearest
from rlanything.core.errors import ConfigError
from rlanything.core.ids import content_id
from rlanything.files import hashes
from rlanything.files.atomic import clear, clear_removed, remove
from rlanything.files.project import PARAMS, PRIVATE
from rlanything.files.reader import read_text
from rlanything.repro import claimed
from rlanything.repro.pipeline import Locked, Pipeline, read_lock, read_pipeline
from rlanything.runs.machine import packages

PARTS = (
    "rlanything",
    "envs",
    "experiments",
    "dvc.yaml",
    PARAMS,
    ".dvcignore",
    ".dvc/config",
    ".dvc/plots",
)
"""The parts of a project that every pipeline needs. A copy also has what the stages of its own read."""
SETTINGS = {
    "OMP_NUM_THREADS": "1",
    "OMP_WAIT_POLICY": "PASSIVE",
    "DVC_NO_ANALYTICS": "1",
    "HF_HUB_OFFLINE": "1",
}
"""Environment variables that `make repro` sets too. A value that the user has set is kept."""
CONFIG = """[core]
    no_scm = true
[cache]
    dir = cache
"""
"""The copy's own settings of DVC: no git, and a cache in the copy. The project's, the user's or the system's settings
may name a shared cache. It holds what is to be made again, and DVC would take it from there."""
COMPARED = ".dvc/compared"
"""The file in a copy whose outputs were compared. It would give the same verdict again without running anything."""
_CAREFULLY: dict[str, Any] = {"filter": "data"} if hasattr(tarfile, "data_filter") else {}
"""Refuses paths outside the folder. Python before 3.11.4 lacks this filter; git archives have no such paths anyway."""
_SKIPPED = shutil.ignore_patterns("__pycache__", "*.pyc")


@dataclass(frozen=True)
class Workspace:
    """The copy. locked: the outputs in the original's dvc.lock. stages: those of the pipeline.

    changed: what the original has of them, on disk or in git, and dvc.lock does not say so (`claimed.changed`).
    """

    root: Path
    locked: Locked
    stages: frozenset[str]
    changed: tuple[str, ...]

    def run(self) -> None:
        """Run `dvc repro` in the copy. Raises `ConfigError` when it fails.

        After a kill it resumes: DVC runs no stage again that the copy's own dvc.lock has."""
        environment = {**SETTINGS, **os.environ}
        environment["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
        done = subprocess.run(
            [sys.executable, "-m", "dvc", "repro", "--no-run-cache"],
            cwd=self.root, env=environment, check=False,
        )  # fmt: skip
        if done.returncode != 0:
            raise ConfigError(
                f"the pipeline failed in {self.root} (exit code {done.returncode}); its output says why"
            )

    def made(self) -> Locked:
        """The outputs in the copy's dvc.lock."""
        path = self.root / "dvc.lock"
        return read_lock(path, read_text(path), self.stages)

    def end(self) -> None:
        """Note that the outputs were compared: the next verification makes the copy anew."""
        (self.root / COMPARED).touch()


def from_disk(root: Path) -> Workspace:
    """A copy of the project as it is on disk. Raises `ConfigError` when it has no dvc.lock."""
    lock = root / "dvc.lock"
    if not lock.is_file():
        raise ConfigError(f"{lock}: no such file; there is nothing to verify before `dvc repro` has run")
    pipeline = read_pipeline(root)
    files = {name: (root / name) for name in (*PARTS, *_more(pipeline)) if (root / name).exists()}
    target = root / PRIVATE / "verify" / f"tree-{_digest(files)}"

    def fill(folder: Path) -> None:
        for name, source in files.items():
            _copy(source, folder / name)

    _begin(target, fill)
    locked = read_lock(lock, read_text(lock), pipeline.stages)
    return Workspace(target, locked, pipeline.stages, claimed.changed(root, locked))


def from_revision(root: Path, revision: str) -> Workspace:
    """A copy of the project at a git revision. Raises `ConfigError` for an unknown revision or one without dvc.lock.

    What its stages read and git does not hold, such as a checkpoint, is taken from disk."""
    commit = _commit(root, revision)
    lock = _git(root, revision, "show", f"{commit}:./dvc.lock").decode()
    archive = _git(root, revision, "archive", "--format=tar", commit)
    target = root / PRIVATE / "verify" / f"{commit[:12]}-{_software()[:12]}"

    def fill(folder: Path) -> None:
        _unpack(archive, folder)
        (folder / "dvc.lock").unlink()
        for name in read_pipeline(folder).needs:
            if (root / name).exists() and not (folder / name).exists():
                _copy(root / name, folder / name)

    _begin(target, fill)
    stages = read_pipeline(target).stages
    locked = read_lock(root / "dvc.lock", lock, stages)
    with TemporaryDirectory(prefix=".git-", dir=target.parent) as folder:  # the copy's own are made again
        _unpack(archive, Path(folder))
        return Workspace(target, locked, stages, claimed.changed(Path(folder), locked))


def _more(pipeline: Pipeline) -> list[str]:
    """What the stages read besides `PARTS`."""
    return [n for n in pipeline.needs if not any(PurePosixPath(n).is_relative_to(part) for part in PARTS)]


def _begin(target: Path, fill: Callable[[Path], None]) -> None:
    """Make the copy with `fill`. That of an interrupted verification is kept, with its results."""
    clear_removed(target)
    if (target / COMPARED).is_file():
        remove(target)
    if not target.is_dir():
        half = target.with_name(f".tmp-{target.name}")
        clear(half)
        half.mkdir(parents=True)
        fill(half)
        _configure(half)
        half.rename(target)


def _unpack(archive: bytes, folder: Path) -> None:
    with tarfile.open(fileobj=BytesIO(archive)) as files:
        files.extractall(folder, **_CAREFULLY)
    _configure(folder)


def _configure(folder: Path) -> None:
    (folder / ".dvc").mkdir(exist_ok=True)
    (folder / ".dvc" / "config.local").write_text(CONFIG)


def _copy(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    if source.is_dir():
        shutil.copytree(source, target, dirs_exist_ok=True, ignore=_SKIPPED)
    else:
        shutil.copyfile(source, target)


def _digest(files: dict[str, Path]) -> str:
    """A hash of the project's files and of what is installed (12 hex digits).

    It names the copy, so only a copy of the same content is resumed, and only with the same packages.
    """
    digest = hashlib.sha256(_software().encode())
    for name, place in sorted(files.items()):
        for path in [place] if place.is_file() else sorted(place.rglob("*")):
            if path.is_file() and "__pycache__" not in path.parts:
                digest.update(f"{name}/{path.relative_to(place)}\0{hashes.digest(path)}\0".encode())
    return digest.hexdigest()[:12]


def _software() -> str:
    """A hash of the versions of Python and of the installed packages."""
    return content_id({"python": platform.python_version(), "packages": packages()})


def _commit(root: Path, revision: str) -> str:
    words = ("rev-parse", "--verify", "--end-of-options", f"{revision}^{{commit}}")
    try:
        return _git(root, revision, *words).decode().strip()
    except ConfigError:
        known = known_revisions(root)
        if not known:  # no repository, no git or no commit, and the message says so
            raise
        raise ConfigError(f"no revision {revision!r}; {nearest(revision, known)}") from None


def _git(root: Path, revision: str, *words: str) -> bytes:
    try:
        return subprocess.run(["git", "-C", str(root), *words], capture_output=True, check=True).stdout
    except FileNotFoundError:
        raise ConfigError(
            "git is not installed; without a revision the project on disk is verified"
        ) from None
    except subprocess.CalledProcessError as error:
        lines = error.stderr.decode(errors="replace").strip().splitlines()
        raise ConfigError(f"revision {revision!r}: {lines[-1] if lines else 'git failed'}") from None
