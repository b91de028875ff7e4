"""The questions of `rlanything buffer` as Python functions: buffers by name in, plain JSON values out.

    from rlanything.buffer.views import diff
    page = diff("full/seed-0@0", "full/seed-0", only="harder")

Each function imports what it needs when it is called, so that the command line starts without polars and DVC.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rlanything.buffer.fields import TaskBufferError
from rlanything.buffer.model import TaskBuffer
from rlanything.buffer.views.find.names import find, named_iteration
from rlanything.buffer.views.find.places import RUNS, arm_and_seed, in_training, on_disk
from rlanything.buffer.views.find.runs import find_runs
from rlanything.buffer.views.find.source import Source
from rlanything.core.adaptation import AcceptanceRule

if TYPE_CHECKING:
    from rlanything.buffer.views.history.log import Filter

Deep = Callable[[Path], tuple[int, str | None]]
"""From the folder of a run: how many records were computed again, and the first that came out otherwise."""


def ls(
    where: str = str(RUNS), *, changed: bool = False, iteration: int | None = None, root: Path = Path()
) -> dict[str, Any] | list[dict[str, Any]]:
    """The slots of the run `where`, or the list of runs below the folder `where`. Raises `TaskBufferError`.

    iteration: of the run, and no other than `where` names; None: that one, or else the last. The list of a project's
    runs has those in training too, but for those that are finished.
    """
    from rlanything.buffer.views.history.slots import run_page, run_row

    below = _runs_below(where, root)
    if not below:
        found = _at(where, iteration, root)
        return run_page(found.whole, found.run_buffer, found.iteration, changed)
    if changed:
        raise TaskBufferError(f"{where} holds {len(below)} runs; --changed needs one of them")
    return [run_row(name, run, iteration) for name, run in below.items()]


def show(where: str, target: str, *, iteration: int | None = None, root: Path = Path()) -> dict[str, Any]:
    """One slot of the run `where`. `target`: its number, or the beginning of a task id. Raises `TaskBufferError`."""
    from rlanything.buffer.views.history.slots import slot_page

    found = _at(where, iteration, root)
    return slot_page(found.whole, found, target)


def diff(
    a: str, b: str = "", *, only: str = "", by: str = "", details: bool = True, root: Path = Path()
) -> dict[str, Any]:
    """What changed from buffer `a` to `b` in project `root`. Raises `TaskBufferError`.

    Without `b`: a revision is compared with the run on disk, an iteration with the run's end, its start with its end.
    only: slots of one kind (`two_way.ONLY`). by: the concentration of one field. details: whether to list slots.
    """
    from rlanything.buffer.views.compare.two_way import diff_page

    left, right = _pair(a, b, root)
    return diff_page(left, right, only=only, by=by, details=details)


def diff3(base: str, a: str, b: str, *, root: Path = Path()) -> dict[str, Any]:
    """What `a` and `b` made of their common start `base`. Raises `TaskBufferError`."""
    from rlanything.buffer.views.compare.three_way import three_page

    first = find(base, root)
    return three_page(first, find(a, root, prefer=first.short), find(b, root, prefer=first.short))


def drift(name: str, *, seed: int = 0, root: Path = Path()) -> dict[str, Any]:
    """How far the tasks of a run moved from its v0s; `seed`: of the permutation test. Raises `TaskBufferError`."""
    from rlanything.buffer.views.history.drift import drift_page

    return drift_page(find(name, root), seed)


def _runs_below(where: str, root: Path) -> dict[str, Path]:
    """The runs below a folder, by their paths below it; none where it is a run itself."""
    path = on_disk(where, root)
    runs = find_runs(path) if path else []
    named = {run.relative_to(path).as_posix(): run for run in runs if path and run != path}
    if where == str(RUNS):
        training = {arm_and_seed(run): run for run in reversed(in_training(root))}
        named |= {name: run for name, run in training.items() if name not in named}
    return named


def _at(where: str, iteration: int | None, root: Path) -> Source:
    """The buffer that a name means, at `iteration` where one is given. Raises `TaskBufferError` if the name differs."""
    found, named = find(where, root), named_iteration(where)
    if iteration is None:
        return found
    if named not in (None, iteration):
        raise TaskBufferError(
            f"{where} is iteration {named}, and --iteration says {iteration}; leave one out"
        )
    return found.at(iteration)


def _pair(a: str, b: str, root: Path) -> tuple[Source, Source]:
    left = find(a, root)
    if b:
        return left, find(b, root, prefer=left.short)
    if left.revision:
        return left, find(left.short, root)
    if left.run is None:
        raise TaskBufferError(f"{left.name} is a file: name a second buffer to compare it with")
    ends = left.run.iterations
    return (left if left.iteration != ends[-1] else left.at(ends[0])), left.at(ends[-1])


def log(name: str, target: str = "", *, wanted: Filter | None = None, root: Path = Path()) -> dict[str, Any]:
    """The events of a run, in order; of one slot if `target` (as in `show`) names it. Raises `TaskBufferError`."""
    from rlanything.buffer.views.history.log import Filter, log_page

    return log_page(find(name, root), target, wanted or Filter())


def verify(
    name: str, *, rule: AcceptanceRule | None = None, deep: Deep | None = None, root: Path = Path()
) -> dict[str, Any]:
    """Compute everything about a run again; `ok` says whether its record is consistent. Raises `TaskBufferError`.

    name: of a whole run. Decisions are checked by `rule`, or else by that of params.yaml, which may have changed since.
    deep: a further check of the run's folder, by what this room may not import; only for a run on disk.
    """
    from rlanything.buffer.views.history.verification import Check, verify_run

    source = find(name, root)
    if named_iteration(name) is not None:
        raise TaskBufferError(
            f"{name} is one iteration, and verify checks the whole run: name {source.whole}"
        )
    checks = verify_run(source, rule or source.rule)
    if deep is not None:
        if source.revision:
            raise TaskBufferError(f"{name}: only a run on disk can be computed again, not one of a revision")
        checks.append(
            Check("replay: signals, decisions and metrics again", *deep(source.run_buffer.folder.parent))
        )
    ok = not any(check.problem for check in checks)
    return {"name": source.whole, "ok": ok, "checks": [asdict(check) for check in checks]}


def export(name: str, target: Path, *, games: bool = False, root: Path = Path()) -> int:
    """Write a buffer as .jsonl, .parquet, or games of the project's family; returns the number of its slots."""
    from rlanything.buffer.views.transfer import export_buffer, game_files

    return export_buffer(find(name, root), root / target, game_files(root)[0] if games else None)


def import_(
    path: Path, target: Path, *, games: bool = False, restart: bool = False, root: Path = Path()
) -> TaskBuffer:
    """Make `target` a run that starts with the buffer in `path`; restart: with its current tasks as v0s."""
    from rlanything.buffer.views.transfer import game_files, import_buffer

    return import_buffer(root / path, root / target, game_files(root)[1] if games else None, restart=restart)
