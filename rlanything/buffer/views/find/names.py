"""How a buffer is named.

    runs/full/seed-0    full/seed-0@12    iter_0012.jsonl    tasks.parquet    HEAD~2    bold-try:full/seed-0@12

A run without `@N` means the end of the run, or the last published iteration of one in training. Before the colon stands
a workspace, or else a revision. A revision without a run means its first run whose tasks changed.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from rlanything.buffer.fields import TaskBufferError
from rlanything.buffer.storage import snapshot_iteration
from rlanything.buffer.views.find.places import (
    RUNS,
    arm_and_seed,
    on_disk,
    project,
    project_of,
    run_names,
    short_name,
)
from rlanything.buffer.views.find.revision import Revision, kept_in, known_revisions, nearest
from rlanything.buffer.views.find.runs import RunBuffer, find_runs, open_run
from rlanything.buffer.views.find.source import PARQUET, Source
from rlanything.core.adaptation import AcceptanceRule
from rlanything.core.errors import FIRST_RUN, NO_RUN, in_workspace
from rlanything.files.project import PARAMS, PRIVATE, workspaces
from rlanything.files.reader import read_text

_AT = re.compile(r"(.+)@(\d{1,9})")


def find(name: str, root: Path = Path(), prefer: str = "") -> Source:
    """The buffer that `name` means in project `root`. `prefer`: the run to take if a revision has it.

    Raises `TaskBufferError` with the nearest names.
    """
    match = _AT.fullmatch(name)
    base, iteration = (match[1], int(match[2])) if match else (name, None)
    path = on_disk(base, root)
    if path is None:
        return _at_revision(base, iteration, root, prefer)
    if path.is_file():
        return _file(base, path, iteration, root)
    return _on_disk(base, path, iteration, root, prefer)


def named_iteration(name: str) -> int | None:
    """The iteration that the name of a buffer says; None where it means the end of a run, or a file."""
    match = _AT.fullmatch(name)
    return int(match[2]) if match else snapshot_iteration(Path(name).name)


def _file(base: str, path: Path, iteration: int | None, root: Path) -> Source:
    if iteration is not None:
        raise TaskBufferError(f"{base} is a file: it has no iterations to choose from")
    if path.suffix not in (PARQUET, ".jsonl"):
        raise TaskBufferError(f"{base} is a file, but no buffer: those end in .jsonl or {PARQUET}")
    number = snapshot_iteration(path.name)
    if number is not None:
        run = open_run(path.parent)
        rule = _rule_on_disk(project_of(path.parent, root))
        return Source(Path(base).parent.as_posix(), rule, run=run, iteration=number)
    return Source(base, _rule_on_disk(root), file=path)


def _on_disk(base: str, path: Path, iteration: int | None, root: Path, prefer: str) -> Source:
    runs = find_runs(path)
    within = runs if path not in runs else []
    wanted = [run for run in within if arm_and_seed(run) == _run_of(prefer)]
    chosen = (wanted or within or [path])[0]
    if len(within) > 1 and not wanted:
        offered = " or ".join(short_name(run, root) for run in within[:3])
        raise TaskBufferError(f"{base} is no run, it holds {len(runs)}; take {offered}")
    run = open_run(chosen)
    short = short_name(chosen, root) if within else base
    rule = _rule_on_disk(project_of(chosen, root))
    return Source(short, rule, run=run, iteration=_checked(run, iteration, short))


def _at_revision(base: str, iteration: int | None, root: Path, prefer: str) -> Source:
    where, colon, rest = base.partition(":")
    revisions = known_revisions(root)
    _require_run(where, root, [] if colon else revisions)
    if colon and where and (within := project(where, root)) is not None:
        raise TaskBufferError(f"no run {rest!r} in {where}; {nearest(rest, run_names(within))}")
    made = run_names(root)
    if (kept := kept_in(root)) != root.resolve():
        raise TaskBufferError(
            f"no run {base!r} in {root}, and no revision: git and DVC keep {kept}, so revisions are named there; "
            f"{nearest(base, made)}"
        )
    known = [*made, *revisions, *workspaces(root)]
    none = "" if made or not known else f"; {NO_RUN}"
    if not revisions:
        raise TaskBufferError(f"no run {base!r}; {nearest(base, known)}{none}")
    revision, _, rest = base.partition(":")
    if not revision:
        raise TaskBufferError(
            f"{base!r}: the revision before the colon is empty; for the project on disk name {rest!r}"
        )
    at = Revision(root, revision)
    try:
        short = rest or _default(at, prefer)
        run = at.run(short)
    except TaskBufferError as error:
        if not str(error).startswith("no path"):
            raise
        raise TaskBufferError(
            f"no path, run or revision {revision!r}; {nearest(revision, known)}{none}"
        ) from None
    short = short.removeprefix(f"{RUNS}/").rstrip("/")
    rule = _declared_rule(at.text(PARAMS))
    return Source(short, rule, revision, run, _checked(run, iteration, f"{revision}:{short}"))


def _require_run(name: str, root: Path, revisions: list[str]) -> None:
    """Raise `TaskBufferError` for a workspace without runs, unless a revision has its name."""
    if name in workspaces(root) and name not in revisions and not run_names(root / PRIVATE / name):
        raise TaskBufferError(f"workspace {name!r} has no run yet; {in_workspace(FIRST_RUN, name)}")


def _default(revision: Revision, prefer: str) -> str:
    revision.require_runs()
    runs = revision.runs
    if not runs:
        problem = f": {revision.not_here}" if revision.lost else f" has no run with a buffer below {RUNS}/"
        raise TaskBufferError(f"revision {revision.name}{problem}")
    if _run_of(prefer) in runs:
        return _run_of(prefer)
    for name in runs:
        run = revision.run(name)
        if run.header(run.iterations[-1]).accepted:
            return name
    return runs[0]


def _run_of(name: str) -> str:
    """Arm and seed in a name without iteration: `bold:full/seed-0`, `runs/full/seed-0`."""
    return name.rpartition(":")[2].removeprefix(f"{RUNS}/")


def _checked(run: RunBuffer, iteration: int | None, name: str) -> int:
    if iteration is None:
        return run.iterations[-1]
    if iteration not in run.iterations:
        held = f"{run.iterations[0]} to {run.iterations[-1]}"
        raise TaskBufferError(f"{name}: no snapshot of iteration {iteration} (there are {held})")
    return iteration


def _rule_on_disk(root: Path) -> AcceptanceRule:
    path = root / PARAMS
    return _declared_rule(read_text(path) if path.exists() else "")


def _declared_rule(params: str) -> AcceptanceRule:
    """The acceptance rule that a params.yaml declares; the paper's if it declares none."""
    from rlanything.files.yaml_file import mapping

    try:
        declared: Any = mapping(Path(PARAMS), params or "{}")["adaptation"]
        band = float(declared["alpha_low"]), float(declared["alpha_high"])
        return AcceptanceRule(*band, declared.get("acceptance", "strict"))
    except (LookupError, TypeError, ValueError, AttributeError):  # an error of YAML is a ValueError
        return AcceptanceRule()
