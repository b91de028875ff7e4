"""A copy of a project in which the pipeline runs from scratch, without cache, models and data."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tarfile
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any

from rlanything.core.errors import ConfigError
from rlanything.files.reader import read_text
from rlanything.files.yaml_file import mapping

PARTS = (
    "rlanything",
    "envs",
    "experiments",
    "dvc.yaml",
    "params.yaml",
    ".dvcignore",
    ".dvc/config",
    ".dvc/plots",
)
"""The parts of a project that the pipeline needs."""
SETTINGS = {
    "OMP_NUM_THREADS": "1",
    "OMP_WAIT_POLICY": "PASSIVE",
    "DVC_NO_ANALYTICS": "1",
    "HF_HUB_OFFLINE": "1",
}
"""Environment variables that `make repro` sets too. A value that the user has set is kept."""
_CAREFULLY: dict[str, Any] = {"filter": "data"} if hasattr(tarfile, "data_filter") else {}
"""Refuses paths outside the folder. Python before 3.11.4 lacks this filter; git archives have no such paths anyway."""
_SKIPPED = shutil.ignore_patterns("__pycache__", "*.pyc")


@dataclass(frozen=True)
class Workspace:
    """The copy. locked: the outputs in the original's dvc.lock, as from `read_lock`."""

    root: Path
    locked: dict[str, dict[str, Any]]

    def run(self) -> None:
        """Run `dvc repro` in the copy. After a kill it resumes. Raises `ConfigError` when it fails."""
        environment = {**SETTINGS, **os.environ}
        environment["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
        done = subprocess.run(
            [sys.executable, "-m", "dvc", "repro"], cwd=self.root, env=environment, check=False
        )
        if done.returncode != 0:
            raise ConfigError(
                f"the pipeline failed in {self.root} (exit code {done.returncode}); its output says why"
            )

    def made(self) -> dict[str, dict[str, Any]]:
        """The outputs in the copy's dvc.lock, as from `read_lock`."""
        path = self.root / "dvc.lock"
        return read_lock(path, read_text(path))


def from_disk(root: Path) -> Workspace:
    """A copy of the project as it is on disk. Raises `ConfigError` when it has no dvc.lock."""
    lock = root / "dvc.lock"
    if not lock.is_file():
        raise ConfigError(f"{lock}: no such file; there is nothing to verify before `dvc repro` has run")
    files = {name: (root / name) for name in PARTS if (root / name).exists()}
    target = root / ".rla" / "verify" / f"tree-{_digest(files)}"
    _begin(target)
    for name, source in files.items():
        _copy(source, target / name)
    return Workspace(target, read_lock(lock, read_text(lock)))


def from_revision(root: Path, revision: str) -> Workspace:
    """A copy of the project at a git revision. Raises `ConfigError` for an unknown revision or one without dvc.lock."""
    commit = _git(root, revision, "rev-parse", "--verify", f"{revision}^{{commit}}").decode().strip()
    lock = _git(root, revision, "show", f"{commit}:./dvc.lock").decode()
    archive = _git(root, revision, "archive", "--format=tar", commit)
    target = root / ".rla" / "verify" / commit[:12]
    _begin(target)
    with tarfile.open(fileobj=BytesIO(archive)) as files:
        files.extractall(target, **_CAREFULLY)
    (target / "dvc.lock").unlink()
    return Workspace(target, read_lock(root / "dvc.lock", lock))


def read_lock(path: Path, text: str) -> dict[str, dict[str, Any]]:
    """All outputs in a dvc.lock: path -> its entry (md5, size, number of files).

    text: the content of `path`. Raises `FileError` for anything but a mapping in YAML."""
    stages = mapping(path, text).get("stages", {})
    return {out["path"]: out for stage in stages.values() for out in stage.get("outs", [])}


def _begin(target: Path) -> None:
    """Make the project folder, with a DVC that uses no git. Results of an interrupted verification are kept."""
    target.mkdir(parents=True, exist_ok=True)
    (target / ".dvc").mkdir(exist_ok=True)
    (target / ".dvc" / "config.local").write_text("[core]\n    no_scm = true\n")


def _copy(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    if source.is_dir():
        shutil.copytree(source, target, dirs_exist_ok=True, ignore=_SKIPPED)
    else:
        shutil.copyfile(source, target)


def _digest(files: dict[str, Path]) -> str:
    """A hash of the project's files (12 hex digits).

    It names the copy, so only a copy of the same content is resumed.
    """
    digest = hashlib.sha256()
    for name, place in sorted(files.items()):
        for path in [place] if place.is_file() else sorted(place.rglob("*")):
            if path.is_file() and "__pycache__" not in path.parts:
                digest.update(f"{name}/{path.relative_to(place)}\0".encode() + path.read_bytes())
    return digest.hexdigest()[:12]


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
