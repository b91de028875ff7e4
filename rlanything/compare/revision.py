"""What a git revision recorded, read from git's objects and DVC's cache.

Nothing is checked out, and git fetches nothing.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from rlanything.buffer.fields import TaskBufferError
from rlanything.buffer.views.find.revision import (
    LOCAL,
    Revision,
    commit_of,
    is_trial,
    known_revisions,
    nearest,
)
from rlanything.compare.project import of_project, plain
from rlanything.compare.recorded import CURVES, SUMMARY, read_summary
from rlanything.compare.side import Side
from rlanything.core.errors import ConfigError
from rlanything.files.project import PARAMS
from rlanything.files.reader import MOST_MB
from rlanything.runs.layout import Layout

_CUT = 12


@dataclass(frozen=True)
class Commit:
    """A commit of the repository of project `root`, by its hash."""

    root: Path
    name: str
    hash: str

    @property
    def is_trial(self) -> bool:
        """Whether a sweep recorded it: dvc.lock then has the evaluations and runs of the commit that it varies."""
        return is_trial(self.root, self.hash)

    def read(self, path: str) -> bytes | None:
        """A file of the project; None where it has none.

        Raises `ConfigError` for one beyond the limit, and for one that git has not fetched."""
        place = f"{self.hash}:./{path}"
        size = _git(self.root, "cat-file", "-s", place)
        if size is None:
            self._require_absent(path, place)
            return None
        if int(size) > MOST_MB << 20:
            raise ConfigError(f"revision {self.name}: {path}: it holds more than {MOST_MB} MB")
        return _git(self.root, "cat-file", "blob", place)

    def _require_absent(self, path: str, place: str) -> None:
        """Raise `ConfigError` unless git says that the commit has no such file: then it ends with 1."""
        done = _run(self.root, "rev-parse", "--verify", "--quiet", place)
        if done is not None and done.returncode != 1:
            raise ConfigError(
                f"revision {self.name}: {path}: git cannot read it here. A partial clone lacks what was not fetched; "
                f"`git show {self.hash[:_CUT]}:./{path}` fetches it, a comparison does not"
            )


def resolve(name: str, root: Path) -> Commit | None:
    """The commit of a branch, tag, hash, `HEAD~2` or DVC experiment; None where there is none, or no git.

    Raises `TaskBufferError` for the name of several experiments.
    """
    commit = commit_of(name, root)
    return None if commit is None else Commit(root, name, commit)


def of_revision(letter: str, name: str, root: Path, arm: str = "") -> Side:
    """The side of what a revision recorded, or of one arm of it. Raises `ConfigError` naming the nearest."""
    commit = resolve(name, root)
    if commit is None:
        raise ConfigError(f"no revision {name!r}; {nearest(name, known_revisions(root))}")
    with _staged(commit) as place:
        kind = f"{'a trial of a sweep, ' if commit.is_trial else ''}recorded in commit {commit.hash[:_CUT]}"
        if not arm:
            return of_project(letter, name, kind, place, commit.hash)
        return of_project(letter, f"{name}:{arm}", f"arm {arm}, {kind}", place, commit.hash, arm)


@contextmanager
def _staged(commit: Commit) -> Iterator[Path]:
    """A folder with the files of the revision that a comparison reads."""
    with TemporaryDirectory(prefix="rlanything-") as folder:
        place = Path(folder)
        for path in (PARAMS, SUMMARY):
            _copy(commit, path, place / path)
        if not (place / SUMMARY).is_file():
            raise ConfigError(
                f"revision {commit.name} ({commit.hash[:_CUT]}) has no {SUMMARY}: no report was recorded there"
            )
        if not commit.is_trial:
            _copy_runs(commit, place)
        yield place


def _copy_runs(commit: Commit, place: Path) -> None:
    """The files that come from the runs themselves: curves, records and evaluations."""
    _copy(commit, CURVES, place / CURVES)
    arms = [arm for arm in read_summary(place / SUMMARY) if plain(arm)]
    for arm in arms:
        path = Layout(Path()).provenance(arm).as_posix()
        _copy(commit, path, place / path)
    _evaluations(commit, arms, place)


def _copy(commit: Commit, path: str, place: Path) -> None:
    content = commit.read(path)
    if content is not None:
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(content)


def _evaluations(commit: Commit, arms: list[str], place: Path) -> None:
    """The evaluations of all arms, which DVC keeps; none where its cache lacks one."""
    revision = Revision(commit.root, commit.hash)
    try:
        found = {arm: revision.text(Layout(Path()).evaluation(arm).as_posix()) for arm in arms}
    except TaskBufferError:
        return
    (place / "evaluation").mkdir()
    for arm, text in found.items():
        if text:
            Layout(place).evaluation(arm).write_text(text, encoding="utf-8")


def _git(root: Path, *words: str) -> bytes | None:
    """The output of a git command; None when it fails."""
    done = _run(root, *words)
    return None if done is None or done.returncode else done.stdout


def _run(root: Path, *words: str) -> subprocess.CompletedProcess[bytes] | None:
    """A git command that has ended; None without git."""
    try:
        command = ["git", "-C", str(root), *words]
        return subprocess.run(command, capture_output=True, check=False, env={**os.environ, **LOCAL})
    except OSError:
        return None
