"""Whether a run holds all that it kept: a snapshot of every iteration, and the rollouts that its record says it saved.

    runs/full/seed-0/buffer/iter_0021.jsonl    the last snapshot of a run of 20 iterations, which measures once more
    runs/full/seed-0/metrics.jsonl             one row a snapshot but the first; only a finished run has it
    provenance/full.json                       the record: `train.iterations` and `train.save_rollouts`

A run in training or killed has neither of the last two. It has what was published, from the first iteration on.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from rlanything.buffer.fields import TaskBufferError
from rlanything.buffer.filesystem import DISK
from rlanything.buffer.storage import FOLDER, snapshot_iteration
from rlanything.buffer.views.find.measurements import rollouts_folder
from rlanything.buffer.views.find.places import RUNS
from rlanything.buffer.views.find.runs import RunBuffer
from rlanything.files.reader import FileError, parse, values

_METRICS = "metrics.jsonl"
_ROLLOUTS = ".jsonl.gz"


def check_snapshots(run: RunBuffer) -> None:
    """Raise `TaskBufferError` unless the snapshots are those of iterations 0 to N, N being where the run ended."""
    for expected, found in enumerate(run.iterations):
        if found != expected:
            raise TaskBufferError(f"{run.folder}: snapshot {expected} is missing, and {found} is there")
    last = run.iterations[-1]
    for ends, said in _ends(run):
        if ends != last:
            raise TaskBufferError(f"{run.folder}: {said}, so its last snapshot is {ends}; here it is {last}")


def check_rollouts(run: RunBuffer) -> bool:
    """Whether the run has rollouts. Raises `TaskBufferError` where those of an iteration are missing or too many."""
    folder = rollouts_folder(run)
    found = {_snapshot_after(name) for name in run.files.names(folder)} - {None}
    too_many, missing = found - {*run.iterations[1:]}, {*run.iterations[1:]} - found
    if too_many:
        number = min(n for n in too_many if n is not None)
        raise TaskBufferError(f"{folder}: iter_{number:04d}{_ROLLOUTS} led to a snapshot that is not there")
    if missing and (found or saved(run)):
        why = "those of others are there" if found else f"{_record(run)} says they were saved"
        raise TaskBufferError(f"{folder}: no rollouts of iteration {min(missing) - 1}, and {why}")
    return bool(found)


def saved(run: RunBuffer) -> bool | None:
    """Whether the run's record says that it saved its rollouts; None where no record says."""
    found = _declared(run).get("save_rollouts")
    return found if isinstance(found, bool) else None


def _snapshot_after(name: str) -> int | None:
    return snapshot_iteration(name.removesuffix(".gz")) if name.endswith(_ROLLOUTS) else None


def _ends(run: RunBuffer) -> Iterator[tuple[int, str]]:
    """The number of the last snapshot of a finished run, by its metrics and by its record, and the words for why."""
    folder = _run_folder(run)
    if folder is not None and _METRICS in run.files.names(folder):
        rows = _rows(run, folder / _METRICS)
        yield rows, f"{_METRICS} has {rows} rows"
    iterations = _declared(run).get("iterations")
    if isinstance(iterations, int):
        yield iterations + 1, f"{_record(run)} says train.iterations = {iterations}"


def _rows(run: RunBuffer, path: Path) -> int:
    try:
        with run.files.open(path) as file:
            return sum(1 for _ in values(file, path))
    except (OSError, FileError) as error:
        raise TaskBufferError(str(error)) from error


def _declared(run: RunBuffer) -> Mapping[str, Any]:
    """The keys `train` of the configuration in the run's record; none where there is no record."""
    path = _record_path(run)
    if path is None or path.name not in run.files.names(path.parent):
        return {}
    try:
        with run.files.open(path) as file:
            record: Any = parse(file.read())
    except (OSError, FileError) as error:
        raise TaskBufferError(f"{path}: {error}") from error
    if not isinstance(record, dict) or run.folder.parent.name.removeprefix("seed-") not in _part(
        record, "seeds"
    ):
        return {}  # of a run that lies beside those of the arm, such as an imported one, it says nothing
    return _part(_part(record, "config"), "train")


def _part(found: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    part = found.get(key)
    return part if isinstance(part, dict) else {}


def _record_path(run: RunBuffer) -> Path | None:
    """Where a finished run's record lies: beside runs/, in provenance/; None for a run elsewhere."""
    folder = _run_folder(run)
    if folder is None:
        return None
    arm = (folder.absolute() if run.files is DISK else folder).parent
    return arm.parents[1] / "provenance" / f"{arm.name}.json" if arm.parent.name == RUNS.name else None


def _record(run: RunBuffer) -> str:
    path = _record_path(run)
    return f"{path.parent.name}/{path.name}" if path else ""


def _run_folder(run: RunBuffer) -> Path | None:
    """The folder of the run whose buffer this is; None where the buffer lies alone."""
    return run.folder.parent if run.folder.name == FOLDER else None
