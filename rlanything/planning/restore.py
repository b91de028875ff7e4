"""The way back to what the last commit records: values, hashes and results, after an experiment that did not end.

DVC restores what its cache has by the hashes in dvc.lock. It writes neither dvc.lock nor the results that git keeps, so
these come from git first.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from itertools import count
from pathlib import Path

from rlanything.core.errors import ConfigError, MachineError
from rlanything.files.project import PARAMS, PRIVATE
from rlanything.stages import REPORT
from rlanything.stages.declared import STAGES

LOCK, PIPELINE = "dvc.lock", "dvc.yaml"
RESULTS = ("provenance", "report")
"""Folders of results that stages write and git keeps."""
KEPT = Path(PRIVATE, "restored")
"""Where params.yaml and dvc.lock are kept as they were, so that finished results can still be found by their hashes.

Results that git does not know are moved there."""
BEFORE = ".before"
"""After their names there: a folder with a params.yaml is a workspace."""
MOST_LINES = 12


def restore(root: Path, *, force: bool = False) -> list[str]:
    """Take params.yaml, dvc.lock, the results that git keeps, and then those that DVC keeps, back to the last commit.

    Nothing else that git tracks is changed. Where git keeps the report or the records of runs, those files of them that
    it does not know are moved to `KEPT`: the recorded report has no such pages.
    force: whether results that DVC's cache does not have are replaced.

    Returns what was done, a line each. Raises `ConfigError` before any change where dvc.yaml has changes or the folder
    is no project of git and DVC, and `MachineError` with DVC's words where it cannot restore a result.
    """
    _check(root)
    tracked = [name for name in (PARAMS, LOCK, *RESULTS) if _git(root, "ls-tree", "HEAD", name)]
    changed = _names(root, "--diff-filter=a", tracked)
    added = _names(root, "--diff-filter=A", tracked)
    said = [f"{name}: not in the last commit, and left as it is" for name in added]
    for name in (name for name in (PARAMS, LOCK) if name in changed and (root / name).is_file()):
        kept = KEPT / f"{name}{BEFORE}"
        (root / KEPT).mkdir(parents=True, exist_ok=True)
        shutil.copyfile(root / name, root / kept)
        said.append(f"{name}: as it was, kept in {kept}")
    if changed:
        _git(root, "checkout", "--quiet", "HEAD", "--", *changed)
        said.append(f"{', '.join(changed)}: as in the last commit")
    said += [_moved(root, name) for name in _unknown(root, tracked)]
    _dvc_checkout(root, force, said)
    return [*said, "results: those of dvc.lock"]


def _check(root: Path) -> None:
    """Raise `ConfigError` where there is nothing to go back to, or something would be lost."""
    if not (root / ".dvc").is_dir():
        raise ConfigError(f"{root}: DVC keeps no results here (no .dvc/); a workspace has nothing to restore")
    for name in (PARAMS, LOCK):
        if not _git(root, "ls-tree", "HEAD", name):
            raise ConfigError(
                f"{root / name}: the last commit has no such file, so there is nothing to restore"
            )
    if _git(root, "diff", "--name-only", "HEAD", "--", PIPELINE):
        raise ConfigError(
            f"{root / PIPELINE}: not that of the last commit, and dvc.lock belongs to it; commit it, or take it back "
            f"with `git checkout HEAD {PIPELINE}`, and then again: `rlanything config restore`"
        )


def _names(root: Path, which: str, tracked: Sequence[str]) -> list[str]:
    """Files that differ from the last commit. With -z git writes names as they are; an arm may be called größe."""
    found = _git(
        root, "diff", "--no-renames", "--name-only", "--relative", "-z", which, "HEAD", "--", *tracked
    )
    return found.split("\0")[:-1]


def _unknown(root: Path, tracked: Sequence[str]) -> list[str]:
    """The results that git neither tracks nor ignores, in the folders that the last commit has."""
    places = [place for place in (RESULTS[0], *_pages()) if Path(place).parts[0] in tracked]
    found = _git(root, "ls-files", "--others", "--exclude-standard", "-z", "--", *places) if places else ""
    return found.split("\0")[:-1]


def _pages() -> Iterator[str]:
    """The outputs of the stage `report`. Other files beside them are not its own."""
    (report,) = (stage for stage in STAGES if stage.name == REPORT)
    for output in (*report.outs, *report.metrics, *report.plots):
        yield from [output] if isinstance(output, str) else output


def _moved(root: Path, name: str) -> str:
    """Move a file to where it is kept, and no other one there is lost. Returns what was done."""
    kept = KEPT / name
    numbers = count(2)
    while os.path.lexists(root / kept):
        kept = KEPT / f"{name}.{next(numbers)}"
    (root / kept).parent.mkdir(parents=True, exist_ok=True)
    shutil.move(root / name, root / kept)
    return f"{name}: not in the last commit, and moved to {kept}"


def _git(root: Path, *words: str) -> str:
    """What git says. Raises `ConfigError` where there is no git, or no commit."""
    try:
        done = subprocess.run(
            ["git", "-C", str(root), *words], capture_output=True, text=True, errors="replace", check=False
        )
    except OSError as error:
        raise ConfigError(f"git: {error.strerror}; what is recorded is in git") from None
    if done.returncode != 0:
        raise ConfigError(f"{root}: git {words[0]}: {' '.join(done.stderr.split())}")
    return done.stdout


def _dvc_checkout(root: Path, force: bool, said: Sequence[str]) -> None:
    """Restore what DVC keeps. said: what was done before; an error says it too, because it is not undone."""
    command = [sys.executable, "-m", "dvc", "checkout", *(["--force"] if force else [])]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, errors="replace", check=False)
    if done.returncode == 0:
        return
    lines = [line for line in (done.stderr + done.stdout).splitlines() if line.strip()][:MOST_LINES]
    raise MachineError(
        "".join(f"{line}\n" for line in said)
        + "params.yaml and dvc.lock are those of the last commit, but `dvc checkout` could not restore every result:\n"
        + "\n".join(lines)
        + "\nWhat the cache lacks, `dvc pull` fetches or `dvc repro` makes again. Results here that the cache does not "
        "have are replaced by `rlanything config restore --force`"
    )
