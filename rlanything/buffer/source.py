"""How a buffer is named on the command line, and what can be asked of it once it is found.

    runs/full/seed-0    full/seed-0@12    iter_0012.jsonl    tasks.parquet    HEAD~2    bold-try:full/seed-0@12

A run without `@N` is meant as it ended. A revision without a run means its first run whose tasks changed.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from rlanything.buffer.event import Event
from rlanything.buffer.fields import TaskBufferError
from rlanything.buffer.measured import last_accuracies
from rlanything.buffer.model import TaskBuffer
from rlanything.buffer.revision import Revision, known_revisions, nearest
from rlanything.buffer.runs import RunBuffer, find_runs, open_run
from rlanything.buffer.storage import read_snapshot, snapshot_iteration
from rlanything.core.types import Direction

RUNS = Path("runs")
"""Where a project's runs lie; a run may be named by its path below this folder."""
PARQUET = ".parquet"
_AT = re.compile(r"(.+)@(\d{1,9})")


@dataclass(frozen=True)
class Band:
    """Accuracies that leave a task as it is (Alg. 1): above `high` it is made harder, below `low` easier.

    `acceptance` names the rule by which a changed task is taken.
    """

    low: float = 0.2
    high: float = 0.8
    acceptance: str = "strict"

    def accepts(self, way: Direction, before: float, after: float) -> bool:
        """Whether a q' with acc `after` may replace a q with acc `before`: Alg. 1, lines 13 and 14.

        `inclusive` lets q' touch the band's edge; `paired` is strict, with both measured in one iteration.
        """
        if after <= 0.0:
            return False
        inclusive = self.acceptance == "inclusive"
        if way is Direction.HARDER:
            return (after >= self.low if inclusive else after > self.low) and after < before
        return (after <= self.high if inclusive else after < self.high) and after > before


@dataclass(frozen=True)
class Source:
    """A buffer that was named: one iteration of a run, or a file that stands alone.

    `revision` is '' for what is on disk now; `short` names the run without revision and iteration.
    """

    short: str
    band: Band
    revision: str = ""
    run: RunBuffer | None = None
    iteration: int = 0
    file: Path | None = None

    @property
    def name(self) -> str:
        """The whole name, by which the same buffer is found again."""
        at = f"@{self.iteration}" if self.run else ""
        return (f"{self.revision}:" if self.revision else "") + self.short + at

    @property
    def is_parquet(self) -> bool:
        """Whether this is a Parquet file, whose columns can be read one by one."""
        return self.file is not None and self.file.suffix == PARQUET

    @cached_property
    def buffer(self) -> TaskBuffer:
        """All of it, checked. Raises `TaskBufferError`."""
        if self.run:
            return self.run.at(self.iteration)
        if self.is_parquet:
            from rlanything.buffer.parquet import read_parquet

            return read_parquet(self._file)
        return read_snapshot(self._file)

    @property
    def events(self) -> tuple[Event, ...]:
        """What happened before this iteration; nothing for a file that stands alone."""
        return self.run.events_before(self.iteration) if self.run else ()

    @cached_property
    def accuracies(self) -> Mapping[tuple[int, str], float]:
        """(slot, task id) -> the last acc(q) known; what a version was accepted with where nothing newer is."""
        known = {
            (lineage.slot, version.task.task_id): version.accuracy
            for lineage in self.buffer.lineages
            for version in lineage.versions
            if version.accuracy is not None
        }
        return known | (last_accuracies(self.run, self.iteration) if self.run else {})

    def at(self, iteration: int) -> Source:
        """Another iteration of the same run."""
        return Source(self.short, self.band, self.revision, self.run_buffer, iteration)

    @property
    def run_buffer(self) -> RunBuffer:
        """The run. Raises `TaskBufferError` for a file that stands alone."""
        if self.run is None:
            raise TaskBufferError(f"{self.name} is a file, not a run")
        return self.run

    @property
    def _file(self) -> Path:
        if self.file is None:
            raise TaskBufferError(f"{self.name} is a run, not a file")
        return self.file


def find(name: str, root: Path = Path(), prefer: str = "") -> Source:
    """The buffer that `name` means in project `root`; `prefer`: the run to take where a revision has it.

    Raises `TaskBufferError` that offers the nearest names.
    """
    base, iteration = _split(name)
    for path in (root / base, root / RUNS / base):
        if path.is_file():
            return _file(base, path, iteration, root)
        if path.is_dir():
            return _on_disk(base, path, iteration, root)
    return _at_revision(base, iteration, root, prefer)


def workspace(source: Source, root: Path) -> Source:
    """The same run as it is on disk now."""
    return find(source.short, root)


def _split(name: str) -> tuple[str, int | None]:
    match = _AT.fullmatch(name)
    return (match[1], int(match[2])) if match else (name, None)


def _file(base: str, path: Path, iteration: int | None, root: Path) -> Source:
    if iteration is not None:
        raise TaskBufferError(f"{base} is a file: it has no iterations to choose from")
    if path.suffix not in (PARQUET, ".jsonl"):
        raise TaskBufferError(f"{base} is a file, but no buffer: those end in .jsonl or {PARQUET}")
    number = snapshot_iteration(path.name)
    if number is not None:
        run = open_run(path.parent)
        return Source(Path(base).parent.as_posix(), _disk_band(root), run=run, iteration=number)
    return Source(base, _disk_band(root), file=path)


def _on_disk(base: str, path: Path, iteration: int | None, root: Path) -> Source:
    runs = find_runs(path)
    if runs and path not in runs and len(runs) > 1:
        offered = " or ".join(_shown(run, root) for run in runs[:3])
        raise TaskBufferError(f"{base} is no run, it holds {len(runs)}; take {offered}")
    run = open_run(runs[0] if runs else path)
    short = _shown(runs[0], root) if runs and path not in runs else base
    return Source(short, _disk_band(root), run=run, iteration=_checked(run, iteration, short))


def _at_revision(base: str, iteration: int | None, root: Path, prefer: str) -> Source:
    known = [*known_revisions(root), *_known_runs(root)]
    revision, _, rest = base.partition(":")
    at = Revision(root, revision)
    if not known_revisions(root):
        raise TaskBufferError(f"no run {base!r}; {nearest(base, known)}")
    try:
        runs = at.runs
    except TaskBufferError as error:
        if not str(error).startswith("no path"):
            raise
        raise TaskBufferError(f"no path, run or revision {revision!r}; {nearest(revision, known)}") from None
    short = rest or _default(at, runs, prefer)
    run = at.run(short)
    short = short.removeprefix(f"{RUNS}/").rstrip("/")
    band = _band(at.text("params.yaml"))
    return Source(short, band, revision, run, _checked(run, iteration, f"{revision}:{short}"))


def _default(revision: Revision, runs: list[str], prefer: str) -> str:
    if not runs:
        raise TaskBufferError(f"revision {revision.name} has no run with a buffer below {RUNS}/")
    if prefer.removeprefix(f"{RUNS}/") in runs:
        return prefer.removeprefix(f"{RUNS}/")
    for name in runs:
        run = revision.run(name)
        if run.header(run.iterations[-1]).accepted:
            return name
    return runs[0]


def _checked(run: RunBuffer, iteration: int | None, name: str) -> int:
    if iteration is None:
        return run.iterations[-1]
    if iteration not in run.iterations:
        held = f"{run.iterations[0]} to {run.iterations[-1]}"
        raise TaskBufferError(f"{name}: no snapshot of iteration {iteration} (there are {held})")
    return iteration


def _known_runs(root: Path) -> list[str]:
    return [run.relative_to(root / RUNS).as_posix() for run in find_runs(root / RUNS)]


def _shown(run: Path, root: Path) -> str:
    return (run.relative_to(root) if run.is_relative_to(root) else run).as_posix()


def _disk_band(root: Path) -> Band:
    path = root / "params.yaml"
    return _band(path.read_text(encoding="utf-8") if path.is_file() else "")


def _band(params: str) -> Band:
    """The band that a params.yaml declares; the paper's where it declares none."""
    import yaml

    try:
        declared: Any = (yaml.safe_load(params) or {})["adaptation"]
        acceptance = str(declared.get("acceptance", "strict"))
        return Band(float(declared["alpha_low"]), float(declared["alpha_high"]), acceptance)
    except (yaml.YAMLError, LookupError, TypeError, ValueError, AttributeError):
        return Band()
