"""Where the runs of a project and its workspaces lie on disk, finished or in training.

runs/full/seed-0                    a finished run
.rla/live/<key>/full/seed-0         a run in training
.rla/bold/runs/full/seed-0          a run of the workspace `bold`
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from rlanything.buffer.views.find.runs import find_runs
from rlanything.files.project import PARAMS, PRIVATE

RUNS = Path("runs")
"""Where a project's runs lie. A run may be named by its path below this folder."""
LIVE = Path(PRIVATE, "live")


def on_disk(name: str, root: Path) -> Path | None:
    """The file or folder that a name without an iteration means in project `root`; None where there is none.

    It is a path, or a run by arm and seed, or one of another project or workspace: `bold:full/seed-0`. A finished run
    comes before one in training. `bold` alone is the folder of the workspace's runs.
    """
    for path in (root / name, root / RUNS / name):
        if path.exists():
            return path
    where, colon, rest = name.partition(":")
    within = project(where, root) if where else None  # "" would be the project itself
    if within is not None:
        return on_disk(rest, within) if colon and rest else _folder(within / RUNS) or _training("", within)
    return _training(name, root)


def in_training(root: Path) -> list[Path]:
    """The runs in training, the newest first. A hidden folder is one that is being removed."""
    keys = sorted((root / LIVE).glob("[!.]*"), key=_changed, reverse=True)
    return [run for key in keys for run in find_runs(key)]


def arm_and_seed(run: Path) -> str:
    """How a finished run and one in training are named alike: full/seed-0."""
    return "/".join(run.parts[-2:])


def unfinished(name: str, root: Path) -> str:
    """How an error ends whose run is in training; '' where no run of that arm, or of that arm and seed, is."""
    short = name.removeprefix(f"{RUNS}/").strip("/")
    arms = [run.parent.name for run in in_training(root) if short in (arm_and_seed(run), run.parent.name)]
    return f"its training has not ended; `rlanything train --arm {arms[0]}` goes on with it" if arms else ""


def short_name(run: Path, root: Path) -> str:
    """The shortest name that finds a run on disk: below runs/ arm and seed, in a workspace `bold:full/seed-0`."""
    parts = run.relative_to(root).parts if run.is_relative_to(root) else ()
    if parts[:1] == (PRIVATE,) and parts[2:3] == RUNS.parts:
        return f"{parts[1]}:{'/'.join(parts[3:])}"
    return "/".join(parts) or run.as_posix()


def project(name: str, root: Path) -> Path | None:
    """The folder of a project or workspace of that name; None where there is none."""
    places = (root / name, root / PRIVATE / name) if name else ()
    return next((place for place in places if (place / PARAMS).is_file()), None)


def run_names(root: Path) -> list[str]:
    """The runs of the project that `root` is, finished ones before those in training."""
    made = [run.relative_to(root / RUNS).as_posix() for run in find_runs(root / RUNS)]
    return made + sorted({arm_and_seed(run) for run in in_training(root)} - {*made})


def project_of(path: Path, root: Path) -> Path:
    """The nearest folder above `path` with a params.yaml, such as a workspace or a trial of a sweep; else `root`."""
    return next((folder for folder in path.resolve().parents if (folder / PARAMS).is_file()), root)


def _training(name: str, root: Path) -> Path | None:
    """The newest run in training of that arm and seed, or the only one of that arm, or of the project for ''."""
    short = name.removeprefix(f"{RUNS}/").strip("/")
    found = [run for run in in_training(root) if short in ("", arm_and_seed(run), run.parent.name)]
    return found[0] if len({arm_and_seed(run) for run in found}) == 1 else None


def _folder(path: Path) -> Path | None:
    return path if find_runs(path) else None


def _changed(folder: Path) -> float:
    """When a folder was changed; 0 for one that is gone: a training that ends renames its own while this looks."""
    with suppress(OSError):
        return folder.stat().st_mtime
    return 0.0
