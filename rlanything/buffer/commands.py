"""The commands of the task buffer as Python functions: buffers by name in, plain JSON values out.

    from rlanything.buffer import diff
    page = diff("full/seed-0@0", "full/seed-0", only="harder")

What a function needs is imported when it runs: naming a command must not cost the columnar library's start.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rlanything.buffer.fields import TaskBufferError
from rlanything.buffer.model import TaskBuffer
from rlanything.buffer.source import Band, Source, find, workspace

if TYPE_CHECKING:
    from rlanything.buffer.history import Filter


def diff(
    a: str, b: str = "", *, only: str = "", by: str = "", details: bool = True, root: Path = Path()
) -> dict[str, Any]:
    """What changed from buffer `a` to `b` in project `root`. Raises `TaskBufferError`.

    Without `b`: a revision is compared with the run on disk, an iteration with the run's end, a run's start with it.
    `only`: slots of one kind (`compare.page.ONLY`). `by`: the concentration of one field. `details`: the slots at all.
    """
    from rlanything.buffer.compare.page import diff_page

    left, right = _pair(a, b, root)
    return diff_page(left, right, only=only, by=by, details=details)


def diff3(base: str, a: str, b: str, *, root: Path = Path()) -> dict[str, Any]:
    """What `a` and `b` made of the buffer `base` that both come from. Raises `TaskBufferError`."""
    from rlanything.buffer.compare.threeway import three_page

    first = find(base, root)
    return three_page(first, find(a, root, prefer=first.short), find(b, root, prefer=first.short))


def drift(name: str, *, seed: int = 0, root: Path = Path()) -> dict[str, Any]:
    """How far the tasks of the run `name` moved from its v0s; `seed`: of the resampling. Raises `TaskBufferError`."""
    from rlanything.buffer.distance import drift_page

    return drift_page(find(name, root), seed)


def _pair(a: str, b: str, root: Path) -> tuple[Source, Source]:
    left = find(a, root)
    if b:
        return left, find(b, root, prefer=left.short)
    if left.revision:
        return left, workspace(left, root)
    if left.run is None:
        raise TaskBufferError(f"{left.name} is a file: name a second buffer to compare it with")
    ends = left.run.iterations
    return (left if left.iteration != ends[-1] else left.at(ends[0])), left.at(ends[-1])


def log(name: str, target: str = "", *, wanted: Filter | None = None, root: Path = Path()) -> dict[str, Any]:
    """What happened in the run `name`, in order; to one slot, if `target` (a number or task id) names it.

    Raises `TaskBufferError`.
    """
    from rlanything.buffer.history import Filter, log_page

    return log_page(find(name, root), target, wanted or Filter())


def verify(name: str, *, band: Band | None = None, root: Path = Path()) -> dict[str, Any]:
    """Everything about the run `name` computed again; `ok` says whether all of it holds. Raises `TaskBufferError`.

    Decisions are held against `band`, or else the one in params.yaml, which may have changed since the run.
    """
    from rlanything.buffer.verification import verify_run

    source = find(name, root)
    checks = verify_run(replace(source, band=band or source.band))
    ok = not any(check.problem for check in checks)
    return {"name": source.name.rpartition("@")[0], "ok": ok, "checks": [check.to_json() for check in checks]}


def export(name: str, target: Path, *, games: bool = False, root: Path = Path()) -> int:
    """Write the buffer `name` as .jsonl, .parquet, or the games of the project's family; how many slots it has."""
    from rlanything.buffer.transfer import export_buffer, game_files

    return export_buffer(find(name, root), root / target, game_files(root)[0] if games else None)


def import_(
    path: Path, target: Path, *, games: bool = False, restart: bool = False, root: Path = Path()
) -> TaskBuffer:
    """Make the folder `target` a run that starts with an exported buffer; `restart` without its history."""
    from rlanything.buffer.transfer import game_files, import_buffer

    return import_buffer(root / path, root / target, game_files(root)[1] if games else None, restart=restart)


def migrate(path: Path, *, root: Path = Path()) -> list[dict[str, Any]]:
    """Write the snapshots at or below `path` in the present schema; what each run was and is.

    Raises `TaskBufferError`.
    """
    from rlanything.buffer.migration import migrate_all

    return [migrated.to_json() for migrated in migrate_all(root / path)]
