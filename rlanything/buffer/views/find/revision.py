"""Runs as they were at a git revision or in a DVC experiment, read through DVC without checking anything out.

DVC reads what its cache lacks from the project's remote, if there is one.
"""

from __future__ import annotations

import difflib
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from rlanything.buffer.fields import TaskBufferError
from rlanything.buffer.storage import FOLDER, snapshot_iteration
from rlanything.buffer.views.find.runs import RunBuffer, natural, open_run
from rlanything.core.errors import NO_RUN
from rlanything.files.project import SWEEP_EMAIL

if TYPE_CHECKING:
    from dvc.api import DVCFileSystem

MOST = 5
"""How many known names an error offers where none is near."""
LOCAL = {"GIT_NO_LAZY_FETCH": "1"}
"""For git's environment: in a partial clone it would fetch what is read. Versions that do not know this do so."""
_EXPERIMENTS = "refs/exps/"
_NOT_HERE = "not in the DVC cache, nor in a remote; try `dvc fetch --all-commits`"
_INTERNAL = tuple(f"{_EXPERIMENTS}{name}" for name in ("apply/", "celery/", "exec/", "stash", "temp/"))


@dataclass(frozen=True)
class Revision:
    """The files of project `root` at revision `name`: a branch, tag, commit, HEAD~2, or an experiment's name."""

    root: Path
    name: str

    @cached_property
    def _tree(self) -> DVCFileSystem:
        from dvc.api import DVCFileSystem

        require_whole(self.root, self.name)
        return DVCFileSystem(str(self.root), rev=self.name)

    def names(self, folder: Path) -> list[str]:
        """The names in a folder; none when there is no such folder."""
        path = folder.as_posix()
        with _explained(self):
            return [Path(p).name for p in self._tree.ls(path, detail=False)] if self._tree.isdir(path) else []

    def open(self, path: Path) -> BinaryIO:
        """A file's content; DVC may have to fetch it. Raises `TaskBufferError`."""
        with _explained(self):
            file: BinaryIO = self._tree.open(path.as_posix(), "rb")
        return file

    @cached_property
    def runs(self) -> list[str]:
        """The runs below `runs/` that have a buffer, sorted by name, numbers by value; without those of `lost`."""
        paths = [path for found in self._arms.values() for path in found or ()]
        folders = {path.parent for path in paths if snapshot_iteration(path.name) is not None}
        below = {(f.parent if f.name == FOLDER else f).relative_to("runs") for f in folders}
        return [path.as_posix() for path in sorted(below, key=natural)]

    @property
    def lost(self) -> list[str]:
        """The arms that neither the DVC cache nor a remote has."""
        return sorted(arm for arm, found in self._arms.items() if found is None)

    @property
    def not_here(self) -> str:
        """The part of an error message that names `lost`."""
        return f"{_NOT_HERE} ({', '.join(f'runs/{arm}' for arm in self.lost)})"

    @cached_property
    def _arms(self) -> dict[str, list[Path] | None]:
        """The files below each name in `runs/`; None for what cannot be loaded, which hides no other arm."""
        from dvc_data.index import DataIndexDirError

        found: dict[str, list[Path] | None] = {}
        for arm in self.names(Path("runs")):
            with _explained(self):
                try:
                    found[arm] = [Path(path) for path in self._tree.find(f"runs/{arm}")]
                except (DataIndexDirError, FileNotFoundError):
                    found[arm] = None
        return found

    def run(self, name: str) -> RunBuffer:
        """A run by its path, with or without `runs/`. Raises `TaskBufferError` with the nearest names.

        Other runs are looked at only where there is none of that name.
        """
        short = name.removeprefix("runs/").rstrip("/")
        self.require_runs()
        if not self._holds(short):
            without = f"; {self.not_here}" if self.lost else ""
            raise TaskBufferError(
                f"no run {name!r} at revision {self.name}; {nearest(short, self.runs)}{without}"
            )
        with _explained(self):
            return open_run(Path("runs") / short, self)

    def require_runs(self) -> None:
        """Raise `TaskBufferError` for a trial of a sweep: the runs there are those of the commit which it varies."""
        if is_trial(self.root, self.name):
            raise TaskBufferError(
                f"revision {self.name}: a trial of a sweep, recorded by its parameters and summary alone; its runs are "
                "in sweeps/<name>/trials/<number>/runs/"
            )

    def _holds(self, short: str) -> bool:
        path = Path(short)
        if path.is_absolute() or path.as_posix() != short or ".." in path.parts or path.name in ("", FOLDER):
            return False
        folders = (Path("runs") / path / FOLDER, Path("runs") / path)
        return any(snapshot_iteration(name) is not None for folder in folders for name in self.names(folder))

    def text(self, path: str) -> str:
        """A file of the project at this revision, or '' when it has none."""
        with _explained(self):
            return str(self._tree.read_text(path)) if self._tree.isfile(path) else ""


def require_whole(root: Path, name: str) -> None:
    """Raise `TaskBufferError` where git lacks files of a commit, as in a partial clone: DVC would wait for ever.

    A name that git does not know is left to DVC.
    """
    start = commit_of(name, root) or name
    words = ["rev-list", "--objects", "--no-walk", "--missing=print", "--end-of-options", start]
    try:
        done = subprocess.run(
            ["git", "-C", str(root), *words], capture_output=True, check=False, env={**os.environ, **LOCAL}
        )
    except OSError:  # no git
        return
    if done.returncode == 0 and (lacking := sum(line.startswith(b"?") for line in done.stdout.splitlines())):
        raise TaskBufferError(
            f"revision {name}: {lacking} files or folders of it are not here, because this is a partial clone; "
            "`git fetch --refetch --no-filter` fetches them"
        )


def kept_in(root: Path) -> Path:
    """The folder that DVC keeps: `root`, or the one above it whose workspace or folder `root` is."""
    here = root.resolve()
    return next((place for place in (here, *here.parents) if (place / ".dvc").is_dir()), here)


def known_revisions(root: Path) -> list[str]:
    """Branches, tags and experiments of the project; none where there is no git."""
    refs = _refs(root)
    names = [_experiment(ref) if ref.startswith(_EXPERIMENTS) else ref.split("/", 2)[2] for ref in refs]
    return sorted({*names, *(["HEAD"] if names else [])})


def is_trial(root: Path, name: str) -> bool:
    """Whether a revision records a trial of a sweep. What it holds besides is that of the commit which it varies."""
    start = commit_of(name, root)
    return start is not None and _git(root, "show", "-s", "--format=%ae", start) == [SWEEP_EMAIL]


def commit_of(name: str, root: Path) -> str | None:
    """The hash of the commit of a branch, tag, hash, `HEAD~2` or DVC experiment; None where there is none, or no git.

    Raises `TaskBufferError` for the name of several experiments, unless one varies HEAD: DVC takes that one.
    """
    found = _git(root, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}")
    return found[0] if found else _experiment_commit(name, root)


def _experiment_commit(name: str, root: Path) -> str | None:
    refs = _refs(root)
    known = (ref for ref in refs if ref.startswith(_EXPERIMENTS))
    found = {_baseline(ref): refs[ref] for ref in known if _experiment(ref) == name}
    if len(found) < 2:
        return next(iter(found.values()), None)
    head = "".join(_git(root, "rev-parse", "--verify", "--quiet", "HEAD"))
    if head not in found:
        raise TaskBufferError(
            f"revision {name!r}: {len(found)} experiments have this name, and none of them varies HEAD; "
            f"name the commit of one: {', '.join(found.values())}"
        )
    return found[head]


def _experiment(ref: str) -> str:
    """The name of an experiment: refs/exps/<first two digits of the commit it varies>/<the others>/<name>."""
    return ref.rsplit("/", 1)[1]


def _baseline(ref: str) -> str:
    """The commit that an experiment varies."""
    return "".join(ref.split("/")[2:4])


def _refs(root: Path) -> dict[str, str]:
    """Every reference of git with the hash it names, without those that DVC makes for itself."""
    lines = _git(root, "for-each-ref", "--format=%(objectname) %(refname)")
    found = {ref: name for name, _, ref in (line.partition(" ") for line in lines)}
    return {ref: name for ref, name in found.items() if not ref.startswith(_INTERNAL)}


def _git(root: Path, *words: str) -> list[str]:
    """The lines that a git command prints; none where it fails, or without git."""
    command = ["git", "-C", str(root), *words]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, check=True, env={**os.environ, **LOCAL}
        )
    except (OSError, subprocess.CalledProcessError):
        return []
    return done.stdout.splitlines()


def nearest(name: str, known: list[str]) -> str:
    """The end of an error message: the known names nearest to `name`; otherwise the first of them, if there are any."""
    close = difflib.get_close_matches(name, known, n=3, cutoff=0.4)
    if close:
        return f"nearest: {', '.join(close)}"
    more = f" and {len(known) - MOST} more" if len(known) > MOST else ""
    return f"known: {', '.join(known[:MOST])}{more}" if known else NO_RUN


@contextmanager
def _explained(revision: Revision) -> Iterator[None]:
    """Turn the errors of git and DVC into a `TaskBufferError` of one line."""
    from dvc.exceptions import DvcException
    from dvc.scm import RevError
    from dvc_data.index import DataIndexDirError

    try:
        yield
    except RevError:
        known = known_revisions(revision.root)
        raise TaskBufferError(
            f"no path, run or revision {revision.name!r}; {nearest(revision.name, known)}"
        ) from None
    except (DataIndexDirError, FileNotFoundError) as error:
        problem = f"revision {revision.name}: {_NOT_HERE}"
        raise TaskBufferError(f"{problem} ({' '.join(str(error).split())})") from None
    except AttributeError:  # DVC takes what `HEAD^{tree}` means for a commit, and asks for its tree
        raise TaskBufferError(f"revision {revision.name}: it is no commit") from None
    except (DvcException, OSError) as error:
        raise TaskBufferError(f"revision {revision.name}: {' '.join(str(error).split())}") from None
