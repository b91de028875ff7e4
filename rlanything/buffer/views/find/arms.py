"""An arm by name: the runs of all its seeds, as `full`, `runs/full`, `low:full` or `HEAD:full`."""

from __future__ import annotations

from pathlib import Path

from rlanything.buffer.views.find.places import RUNS, on_disk
from rlanything.buffer.views.find.revision import Revision, commit_of
from rlanything.buffer.views.find.runs import find_runs


def seeds_of(name: str, root: Path = Path()) -> list[str]:
    """The names of an arm's runs, such as seed-0, in order; none where `name` is no arm of project `root`.

    Raises `TaskBufferError` for the name of a sweep's trial as a revision.
    """
    path = on_disk(name, root)
    if path is not None:
        found = find_runs(path) if path.is_dir() else []
        return [run.name for run in found] if all(run.parent == path for run in found) else []
    revision, _, arm = name.partition(":")
    if not revision or not arm or "@" in arm or commit_of(revision, root) is None:
        return []
    at = Revision(root, revision)
    at.require_runs()
    return [run.name for run in map(Path, at.runs) if run.parent == Path(arm.removeprefix(f"{RUNS}/"))]


def are_arms(a: str, b: str, root: Path = Path()) -> bool:
    """Whether both are arms, and one has several seeds. Of one seed each, the runs themselves are compared."""
    counts = [len(seeds_of(name, root)) for name in (a, b)]
    return min(counts) > 0 and max(counts) > 1
