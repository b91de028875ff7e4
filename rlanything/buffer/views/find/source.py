"""A buffer that a user named: one iteration of a run, or a file that stands alone, read on demand."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from rlanything.buffer.event import Event
from rlanything.buffer.fields import TaskBufferError
from rlanything.buffer.model import TaskBuffer
from rlanything.buffer.storage import read_snapshot
from rlanything.buffer.views.find.measurements import last_accuracies, rollout_files
from rlanything.buffer.views.find.runs import RunBuffer
from rlanything.core.adaptation import AcceptanceRule

if TYPE_CHECKING:
    from rlanything.buffer.views.columns.table import Table

PARQUET = ".parquet"


@dataclass(frozen=True)
class Source:
    """One iteration of `run`, or the buffer in `file`; `rule`: the acceptance rule of its project.

    short: the name without revision and iteration. revision: '' for what is on disk now.
    """

    short: str
    rule: AcceptanceRule
    revision: str = ""
    run: RunBuffer | None = None
    iteration: int = 0
    file: Path | None = None

    @property
    def name(self) -> str:
        """The whole name. It finds the same buffer again."""
        return f"{self.whole}@{self.iteration}" if self.run else self.whole

    @property
    def whole(self) -> str:
        """The name without the iteration: of the whole run, or of the file."""
        return (f"{self.revision}:" if self.revision else "") + self.short

    @cached_property
    def buffer(self) -> TaskBuffer:
        """All of it, checked. Raises `TaskBufferError`."""
        return self.run.at(self.iteration) if self.run else read_buffer(self._file)

    @cached_property
    def table(self) -> Table:
        """Its columns. Those of a Parquet file are read without the tasks. Raises `TaskBufferError`."""
        # polars is slow to import, and most commands do without.
        if self.file is not None and self.file.suffix == PARQUET:
            from rlanything.buffer.views.columns.parquet import read_table

            return read_table(self.file)
        from rlanything.buffer.views.columns.table import table_of

        buffer, accuracies = self.buffer, self.accuracies  # their errors name a file already
        try:
            return table_of(buffer, accuracies)
        except TaskBufferError as error:
            raise TaskBufferError(f"{self.name}: {error}") from None

    @property
    def events(self) -> tuple[Event, ...]:
        """The events before this iteration; none for a file."""
        return self.run.events_before(self.iteration) if self.run else ()

    @cached_property
    def accuracies(self) -> Mapping[tuple[int, str], float]:
        """(slot, task id) -> the last acc(q) measured, or else the one with which the version was accepted."""
        known = {
            (lineage.slot, version.task.task_id): version.accuracy
            for lineage in self.buffer.lineages
            for version in lineage.versions
            if version.accuracy is not None
        }
        return known | (last_accuracies(self.run, self.iteration) if self.run else {})

    @property
    def partial(self) -> bool:
        """Whether acc(q) is known of the tasks that were to be rewritten only: the run kept no rollouts.

        Those tasks are the ones outside the band, so their accuracies say nothing about the buffer.
        """
        if self.run is None or self.iteration == self.run.iterations[0]:
            return False
        return not any(iteration < self.iteration for iteration in rollout_files(self.run))

    def at(self, iteration: int) -> Source:
        """Another iteration of the same run."""
        return Source(self.short, self.rule, self.revision, self.run_buffer, iteration)

    @property
    def run_buffer(self) -> RunBuffer:
        """The run. Raises `TaskBufferError` for a file."""
        if self.run is None:
            raise TaskBufferError(f"{self.name} is a file, not a run")
        return self.run

    @property
    def _file(self) -> Path:
        if self.file is None:
            raise TaskBufferError(f"{self.name} is a run, not a file")
        return self.file


def read_buffer(path: Path) -> TaskBuffer:
    """The buffer in a .parquet or .jsonl file, checked. Raises `TaskBufferError`."""
    if path.suffix == PARQUET:
        from rlanything.buffer.views.columns.parquet import read_parquet

        return read_parquet(path)
    return read_snapshot(path)
