"""A second copy of a project in which its pipeline runs from nothing: no cache, no models, no data."""

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

import yaml

from rlanything.core.errors import ConfigError

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
"""What of a project the pipeline runs on."""
SETTINGS = {
    "OMP_NUM_THREADS": "1",
    "OMP_WAIT_POLICY": "PASSIVE",
    "DVC_NO_ANALYTICS": "1",
    "HF_HUB_OFFLINE": "1",
}
"""What `make repro` sets as well; a value of one's own is kept."""
_CAREFULLY: dict[str, Any] = {"filter": "data"} if hasattr(tarfile, "data_filter") else {}
"""Nothing outside the folder; Python before 3.11.4 does not know the word, and git archives nothing outside."""
_SKIPPED = shutil.ignore_patterns("__pycache__", "*.pyc")


@dataclass(frozen=True)
class Workspace:
    """The copy. `locked` is the dvc.lock that the original claims: output -> what DVC recorded of it."""

    root: Path
    locked: dict[str, dict[str, Any]]

    def run(self) -> None:
        """`dvc repro` in the copy; a killed one goes on where it was. Raises `ConfigError` when it fails."""
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
        """What came out: output -> what DVC recorded of it."""
        return read_lock((self.root / "dvc.lock").read_text())


def from_disk(root: Path) -> Workspace:
    """A copy of the project as it lies there. Raises `ConfigError` when it was never reproduced."""
    lock = root / "dvc.lock"
    if not lock.is_file():
        raise ConfigError(f"{lock}: no such file; there is nothing to verify before `dvc repro` has run")
    files = {name: (root / name) for name in PARTS if (root / name).exists()}
    target = root / ".rla" / "verify" / f"tree-{_digest(files)}"
    _begin(target)
    for name, source in files.items():
        _copy(source, target / name)
    return Workspace(target, read_lock(lock.read_text()))


def from_revision(root: Path, revision: str) -> Workspace:
    """A copy of the project at a git revision. Raises `ConfigError`."""
    commit = _git(root, revision, "rev-parse", "--verify", f"{revision}^{{commit}}").decode().strip()
    lock = _git(root, revision, "show", f"{commit}:./dvc.lock").decode()
    archive = _git(root, revision, "archive", "--format=tar", commit)
    target = root / ".rla" / "verify" / commit[:12]
    _begin(target)
    with tarfile.open(fileobj=BytesIO(archive)) as files:
        files.extractall(target, **_CAREFULLY)
    (target / "dvc.lock").unlink()
    return Workspace(target, read_lock(lock))


def read_lock(text: str) -> dict[str, dict[str, Any]]:
    """Output -> its md5, size and number of files, of every stage in a dvc.lock, in the pipeline's order."""
    stages = yaml.safe_load(text).get("stages", {})
    return {out["path"]: out for stage in stages.values() for out in stage.get("outs", [])}


def _begin(target: Path) -> None:
    """An empty project folder; one that an interrupted verification left keeps what it has computed."""
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
    """Names the copy by its content, so that only the very same one is continued."""
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
