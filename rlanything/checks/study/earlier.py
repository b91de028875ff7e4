"""The registration that a study of this name had before: beside its results, or in git.

The workspace of a study has another name once code that it trains with has changed, so it cannot say what was there
before. The results and git's history can.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rlanything.core.errors import ConfigError
from rlanything.files.reader import read_object

RESULTS = "study.json"


def is_published(folder: Path) -> bool:
    """Whether results of the study lie in `folder`."""
    return (folder / RESULTS).is_file()


def published_declaration(folder: Path) -> dict[str, Any]:
    """What the published results say was declared. Raises `ConfigError`."""
    declared = read_object(folder / RESULTS, "take it from git").get("declared")
    if not isinstance(declared, dict):
        raise ConfigError(f"{folder / RESULTS}: it does not say what was declared; take it from git")
    return declared


def committed(path: Path) -> str | None:
    """The newest text of a file in git's history, also of one that was deleted since. None where git has none."""
    return next(versions(path), None)


def versions(path: Path) -> Iterator[str]:
    """The texts of a file in the history of the commit that is checked out, the newest first."""
    # Without --full-history git follows one side of a merge, and would not see what came and went on the other.
    words = ("rev-list", "--full-history", "HEAD", "--", _inside(path))
    for commit in (_git(path.parent, *words) or "").split():
        text = _git(path.parent, "show", f"{commit}:{_place(path)}")
        if text is not None:
            yield text


def _git(folder: Path, *words: str) -> str | None:
    """The output of a git command, run in the nearest folder that is there; None when it fails."""
    command = ["git", "-C", str(next(_existing(folder))), *words]
    try:
        done = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)
    except OSError:  # no git
        return None
    return done.stdout if done.returncode == 0 else None


def _existing(folder: Path) -> Iterator[Path]:
    """The folder and those above it that are there, nearest first: that of a check may not be there yet."""
    return (place for place in (folder.resolve(), *folder.resolve().parents) if place.is_dir())


def _inside(path: Path) -> str:
    """The path from the nearest folder that is there."""
    full = path.resolve()
    return full.relative_to(next(_existing(full.parent))).as_posix()


def _place(path: Path) -> str:
    """The path as `git show COMMIT:` reads it, from the folder where git runs."""
    return f"./{_inside(path)}"
