"""Whether the outputs that a project has, on disk or in git, are the ones that its dvc.lock recorded."""

from __future__ import annotations

import hashlib
import json
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rlanything.files.reader import FileError, read_json
from rlanything.repro.pipeline import Locked, Output

if TYPE_CHECKING:
    from dvc.repo import Repo

_FOLDER = ".dir"
"""The end of what a dvc.lock says of a folder: the hash of its list of files. DVC keeps that list in its cache."""


def changed(root: Path, locked: Locked) -> tuple[str, ...]:
    """The outputs below `root` that are not what dvc.lock says; of a folder the first such file, if its list is known.

    Outputs that are not there are none of them: a clone has only those that git keeps.
    """
    from dvc.repo import Repo

    with Repo(str(root)) as repo:
        found = (_changed(repo, root, out) for out in locked.outputs.values() if (root / out.path).exists())
        return tuple(path for path in found if path)


def _changed(repo: Repo, root: Path, out: Output) -> str:
    """The path of what changed in an output; '' where nothing did."""
    place = root / out.path
    if place.is_file():
        return "" if _md5(place) == out.md5 else out.path
    files = _listed(repo, place)
    if hashlib.md5(json.dumps(files, sort_keys=True).encode()).hexdigest() + _FOLDER == out.md5:
        return ""
    recorded, now = _names(_recorded(repo, out.md5)), _names(files)
    differing = sorted(name for name in {*recorded, *now} if recorded.get(name) != now.get(name))
    return f"{out.path}/{differing[0]}" if recorded and differing else out.path


def _listed(repo: Repo, folder: Path) -> list[dict[str, str]]:
    """The files of a folder as DVC lists them, without what .dvcignore names."""
    files = (Path(name) for name in repo.dvcignore.find(repo.fs, str(folder)))
    named = ({"md5": _md5(path), "relpath": path.relative_to(folder).as_posix()} for path in files)
    return sorted(named, key=itemgetter("relpath"))


def _recorded(repo: Repo, md5: str) -> Any:
    """The recorded list of a folder; [] where the cache does not have it."""
    try:
        return read_json(Path(repo.cache.local.oid_to_path(md5)))
    except FileError:
        return []


def _names(files: list[dict[str, str]]) -> dict[str, str]:
    return {file["relpath"]: file["md5"] for file in files}


def _md5(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "md5").hexdigest()
