"""A buffer as columns: numpy arrays and a polars frame, fast enough to compare a million slots.

Letters: S slots, V versions of all slots, T tries of all slots. Of a task id only the first 60 bits are kept: ids are
compared within one slot, where two different ids never share them by chance.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from rlanything.buffer.fields import TaskBufferError
from rlanything.buffer.model import Lineage, TaskBuffer
from rlanything.buffer.views.tasks.task_fields import kind_fields, scalar_fields, spelled
from rlanything.core.types import Direction

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
KEY_DIGITS = 15
KIND = "kind."
"""How the name of a column begins that holds a field which sorts tasks into kinds."""
MOST = (1 << 63) - 1
"""The largest slot or iteration in a column."""
COLUMNS: dict[str, Any] = {
    "slot": pl.Int64,
    "number": pl.Int32,
    "head": pl.Boolean,
    "iteration": pl.Int64,
    "direction": pl.String,
    "accuracy_before": pl.Float64,
    "accuracy": pl.Float64,
    "measured": pl.Float64,
    "env": pl.String,
    "instruction": pl.String,
    "payload": pl.String,
    "metadata": pl.String,
    "task_id": pl.String,
    "key": pl.Int64,
    "tried": pl.List(pl.String),
}
"""Of a Parquet file, besides those of `KIND`."""
_ID = re.compile(r"[0-9a-f]{64}")
WAYS = {None: 0, Direction.HARDER: 1, Direction.EASIER: -1}


@dataclass(frozen=True)
class Table:
    """slots: S numbers, ascending. start: S + 1 offsets; slot i has versions start[i] to start[i + 1] - 1.

    key, way: per version, its task id's first bits and its direction (+1 harder, -1 easier, 0 for a v0).
    accuracy: per slot, the last known acc(q) of its task; nan if none was measured.
    tried_slot, tried_key: per try that never became a version, its slot's number and its task id's first bits.
    kinds: S rows; the fields that sort tasks into kinds, as text.
    """

    slots: Ints
    start: Ints
    key: Ints
    way: npt.NDArray[np.int8]
    accuracy: Floats
    tried_slot: Ints
    tried_key: Ints
    kinds: pl.DataFrame


def task_key(task_id: str) -> int:
    """The first 60 bits of a task id. Raises `TaskBufferError` for what is none, as a stranger's file may hold."""
    if not _ID.fullmatch(task_id):
        raise TaskBufferError(f"{task_id[:40]!r}: a task id is 64 hex digits")
    return int(task_id[:KEY_DIGITS], 16)


def require_columns(lineages: Sequence[Lineage]) -> None:
    """Raise `TaskBufferError` for a number or an id that columns cannot hold. A file of JSON lines may hold any."""
    for lineage in lineages:
        for what, number in (("slot", lineage.slot), ("iteration", lineage.head.iteration)):
            if number > MOST:
                raise TaskBufferError(f"{what} {number}: at most {MOST} can be read as columns")
        for task_id in lineage.tried:
            task_key(task_id)


def table_of(buffer: TaskBuffer, accuracies: Mapping[tuple[int, str], float]) -> Table:
    """The columns of a buffer. `accuracies`: (slot, task id) -> the last known acc(q). Raises `TaskBufferError`."""
    lineages = buffer.lineages
    require_columns(lineages)
    versions = [version for lineage in lineages for version in lineage.versions]
    heads = [accuracies.get((lineage.slot, lineage.head.task.task_id), np.nan) for lineage in lineages]
    tried = [(lineage.slot, task_key(task_id)) for lineage in lineages for task_id in lineage.tried]
    pairs = np.array(tried, dtype=np.int64).reshape(-1, 2)
    return Table(
        slots=np.array([lineage.slot for lineage in lineages], dtype=np.int64),
        start=np.cumsum([0, *(len(lineage.versions) for lineage in lineages)], dtype=np.int64),
        key=np.array([task_key(version.task.task_id) for version in versions], dtype=np.int64),
        way=np.array([WAYS[version.direction] for version in versions], dtype=np.int8),
        accuracy=np.array(heads, dtype=np.float64),
        tried_slot=pairs[:, 0],
        tried_key=pairs[:, 1],
        kinds=kind_frame([scalar_fields(lineage.head.task) for lineage in lineages]),
    )


def kind_frame(found: list[dict[str, Any]]) -> pl.DataFrame:
    """One row a task, one column a field that sorts tasks into kinds; '-' if a task lacks the field.

    A lone surrogate, which columns cannot hold, is written as its escape.
    """
    named = [{utf8(path): value for path, value in task.items()} for task in found]
    columns = {path: [utf8(spelled(task.get(path))) for task in named] for path in kind_fields(named)}
    return pl.DataFrame(columns, schema=dict.fromkeys(columns, pl.String))


def utf8(text: str) -> str:
    """The text with each lone surrogate, which columns cannot hold, as its escape."""
    return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode()
