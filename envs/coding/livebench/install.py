"""Setup: a virtual environment with what LiveBench's coding grader needs, for a clone of its repository.

Its own list of packages clashes with this project's, and most of them serve other categories.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import asdict, dataclass
from pathlib import Path

from envs.coding.livebench.appending import read_object
from rlanything.core.errors import UserError
from rlanything.files.records import write_json

GRADER = Path("livebench/process_results/coding/utils.py")
PACKAGES = ("numpy", "tqdm", "scipy", "sortedcontainers", "matplotlib")
"""Packages of LiveBench's pyproject.toml that the coding grader, or the programs that it runs, import."""
RECORD = "livebench.json"
VENV = "venv"


class LiveBenchError(UserError):
    """LiveBench cannot be set up or used; the message says why and what would help."""


@dataclass(frozen=True, slots=True)
class Installation:
    """An installed grader: the repository and its commit, the interpreter, the versions of the packages."""

    repository: str
    commit: str
    changed: bool
    python: str
    version: str
    packages: dict[str, str]

    @property
    def identity(self) -> dict[str, object]:
        """What a score depends on: everything but the paths."""
        return {key: value for key, value in asdict(self).items() if key not in ("repository", "python")}

    def importable(self) -> Path:
        """The folder of its packages. Raises `LiveBenchError` where this interpreter cannot import them."""
        release = ".".join(self.version.split(".")[:2])
        if release != "{}.{}".format(*sys.version_info):
            raise LiveBenchError(
                f"{self.python}: its packages are those of Python {release}, and this is Python "
                f"{sys.version.split()[0]}; run `rlanything livebench setup` again"
            )
        return Path(self.python).parents[1] / "lib" / f"python{release}" / "site-packages"


def setup(repository: Path, folder: Path) -> Installation:
    """Make `folder` with a virtual environment and a record of it. Raises `LiveBenchError`."""
    repository = repository.resolve()
    if not (repository / GRADER).is_file():
        raise LiveBenchError(
            f"{repository}: it has no {GRADER}; it must be a clone of LiveBench's repository"
        )
    venv = folder.resolve() / VENV
    python = venv / "bin" / "python"
    _output_of([sys.executable, "-m", "venv", "--clear", str(venv)])
    _output_of(
        [str(python), "-I", "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *PACKAGES]
    )
    commit, changed = _revision(repository)
    made = Installation(
        str(repository), commit, changed, str(python), sys.version.split()[0], _versions(python)
    )
    write_json(folder / RECORD, asdict(made))
    return made


def read(folder: Path) -> Installation:
    """What `setup` made. Raises `LiveBenchError` when it is not there or the repository has moved on."""
    found = recorded(folder)
    if not Path(found.repository, GRADER).is_file():
        raise LiveBenchError(
            f"{Path(found.repository, GRADER)} is gone; run `rlanything livebench setup` again"
        )
    if _revision(Path(found.repository)) != (found.commit, found.changed):
        raise LiveBenchError(f"{found.repository} is no longer at {found.commit[:12]}; run setup again")
    return found


def recorded(folder: Path) -> Installation:
    """What `setup` made; the repository may be gone. Raises `LiveBenchError` when there was no setup."""
    path = folder / RECORD
    if not path.is_file():
        raise LiveBenchError(f"{path} is missing; run `rlanything livebench setup --repository PATH` first")
    # The grader's box needs this module, also where pydantic cannot be read.
    from pydantic import TypeAdapter, ValidationError

    try:
        found = TypeAdapter(Installation).validate_python(read_object(path))
    except ValidationError as error:
        key, said = ".".join(map(str, error.errors()[0]["loc"])), error.errors()[0]["msg"]
        raise LiveBenchError(f"{path}: {key}: {said}; run `rlanything livebench setup` again") from None
    if not os.path.isfile(found.python):
        raise LiveBenchError(f"{found.python} is gone; run `rlanything livebench setup` again")
    return found


def _revision(repository: Path) -> tuple[str, bool]:
    """The commit, and whether tracked files differ from it. Raises `LiveBenchError` where git knows none."""
    git = ["git", "-C", str(repository)]
    commit = _output_of([*git, "rev-parse", "HEAD"]).strip()
    return commit, bool(_output_of([*git, "status", "--porcelain", "--untracked-files=no"]).strip())


def _versions(python: Path) -> dict[str, str]:
    listed = json.loads(
        _output_of([str(python), "-I", "-m", "pip", "list", "--format=json", "--disable-pip-version-check"])
    )
    return {item["name"]: item["version"] for item in listed}


def _output_of(command: list[str]) -> str:
    try:
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout
    except FileNotFoundError:
        raise LiveBenchError(f"{command[0]} is not installed") from None
    except subprocess.CalledProcessError as error:
        raise LiveBenchError(f"{' '.join(command[:4])} ... failed: {error.stderr.strip()[-2000:]}") from None
