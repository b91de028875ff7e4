"""A buffer as one Parquet file: one row a version, sorted by slot and number.

The columns that hold the buffer are slot, number, iteration, direction, accuracy_before, accuracy, env, instruction,
payload and metadata (JSON), task_id, and tried (in the row of a slot's head). `measured` is the last acc(q) of a head.
The columns head, key and kind.* make reading fast. They are computed when the file is written, and again when it is
read (`derived.py`): a file that says otherwise is refused.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from rlanything.buffer import fields
from rlanything.buffer.fields import TaskBufferError
from rlanything.buffer.model import Lineage, TaskBuffer, Version
from rlanything.buffer.storage import SNAPSHOT
from rlanything.buffer.views.columns.derived import require_derived
from rlanything.buffer.views.columns.table import (
    COLUMNS,
    KEY_DIGITS,
    KIND,
    Table,
    kind_frame,
    require_columns,
    task_key,
)
from rlanything.buffer.views.columns.trial import decoded_size
from rlanything.buffer.views.tasks.task_fields import scalar_fields
from rlanything.core.ids import canonical_json
from rlanything.core.printable import SURROGATE
from rlanything.files import atomic
from rlanything.files.reader import FileError, opened, parse, require_fits

SCHEMA = 1
"""Version of the columns. Every other one is refused."""
ROW = 64
"""Bytes of a row whose texts are empty."""
_PASSING = 8
"""How many times the limit the texts of a comparison may take in all. They are read part by part, and none is kept."""


def write_parquet(
    buffer: TaskBuffer, path: Path, measured: Mapping[tuple[int, str], float] | None = None
) -> None:
    """Write `buffer`; `measured`: the last acc(q) of its tasks.

    Raises `TaskBufferError` for what a column cannot hold, and when the file cannot be written.
    """
    require_columns(buffer.lineages)
    rows = [row for lineage in buffer.lineages for row in _rows(lineage, measured or {})]
    frame = pl.DataFrame(rows, schema=COLUMNS, orient="row")
    kinds = kind_frame([scalar_fields(lineage.head.task) for lineage in buffer.lineages])
    heads = pl.concat(
        [frame.filter("head").select("slot"), kinds.rename(lambda name: KIND + name)], how="horizontal"
    )
    whole = frame.join(heads.with_columns(pl.lit(True).alias("head")), on=["slot", "head"], how="left")
    write_frame(whole.lazy(), path, len(buffer), buffer.accepted, buffer.digest)


def write_frame(frame: pl.LazyFrame, path: Path, slots: int, accepted: int, digest: str) -> None:
    """Write rows sorted by slot and number, with a header. Raises `TaskBufferError` when the file cannot be written."""
    header = {"format": SNAPSHOT, "schema": str(SCHEMA), "slots": str(slots), "accepted": str(accepted)}
    try:
        with atomic.beside(path) as temporary:
            frame.sink_parquet(temporary, metadata={**header, "digest": digest}, maintain_order=True)
    except OSError as error:
        raise TaskBufferError(f"{path}: {error.strerror or error}") from error


def read_parquet(path: Path) -> TaskBuffer:
    """The buffer in a Parquet file, its ids, digest and computed columns checked. Raises `TaskBufferError`."""
    names = [name for name in COLUMNS if name not in ("head", "key", "measured")]
    header = _opened(path, 1)
    with _damage(path):
        buffer = TaskBuffer(tuple(_lineages(pl.read_parquet(path, columns=names))))
    if buffer.digest != header.get("digest"):
        said, real = header.get("digest", "nothing")[:12], buffer.digest[:12]
        raise TaskBufferError(f"{path}: digest mismatch, the header says {said}, the content gives {real}")
    with _damage(path):
        require_derived(path, header)
    return buffer


def read_table(path: Path) -> Table:
    """The columns that a comparison needs, checked against the tasks in the file. Raises `TaskBufferError`.

    The tasks are not kept, and their metadata and the digest are not checked, as `read_parquet` does.
    """
    header = _opened(path, _PASSING)
    with _damage(path):
        require_derived(path, header)
        return _table(pl.scan_parquet(path))


def _opened(path: Path, times: int) -> dict[str, str]:
    """The header of a file that can be decoded, its content within so many times the limit."""
    _require_file(path)
    rows, texts = decoded_size(path, list(COLUMNS), KIND)
    try:
        # A column that repeats one text holds it once: a kilobyte may stand for gigabytes.
        require_fits(path, (rows * ROW + texts) // times)
    except FileError as error:
        raise TaskBufferError(str(error)) from None
    return read_kind(path)


def _table(file: pl.LazyFrame) -> Table:
    way = (pl.col("direction") == "harder").cast(pl.Int8) - (pl.col("direction") == "easier").cast(pl.Int8)
    rows = file.select("key", "head", way.fill_null(0).alias("way")).collect(engine="streaming")
    kinds = [name for name in file.collect_schema().names() if name.startswith(KIND)]
    heads = (
        file.filter("head")
        .select("slot", pl.coalesce("measured", "accuracy"), *kinds)
        .collect(engine="streaming")
    )
    tried = (
        file.filter(pl.col("head") & (pl.col("tried").list.len() > 0))
        .select("slot", "tried")
        .explode("tried")
        .select("slot", pl.col("tried").str.head(KEY_DIGITS).str.to_integer(base=16))
        .collect(engine="streaming")
    )
    slots = heads["slot"].to_numpy()
    return Table(
        slots=slots,
        start=np.concatenate([[0], np.flatnonzero(rows["head"].to_numpy()) + 1]).astype(np.int64),
        key=rows["key"].to_numpy(),
        way=rows["way"].to_numpy(),
        accuracy=heads["measured"].fill_null(np.nan).to_numpy(),
        tried_slot=tried["slot"].to_numpy(),
        tried_key=tried["tried"].to_numpy(),
        kinds=heads.select(pl.col(name).fill_null("-").alias(name.removeprefix(KIND)) for name in kinds),
    )


@contextmanager
def _damage(path: Path) -> Iterator[None]:
    """What a damaged file makes of Polars and of the rows leaves the block as `TaskBufferError`."""
    try:
        yield
    except TaskBufferError as error:
        raise TaskBufferError(str(error) if str(path) in str(error) else f"{path}: {error}") from error
    except (ValueError, TypeError, AttributeError) as error:
        raise TaskBufferError(f"{path}: {error}") from error
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException) as error:
        raise TaskBufferError(
            f"{path}: a damaged Parquet file ({' '.join(str(error).split())[:80]})"
        ) from None


def _require_file(path: Path) -> None:
    """Raise `TaskBufferError` unless it is a regular file, and no larger than is read."""
    try:
        opened(path).close()
    except FileError as error:
        raise TaskBufferError(str(error)) from None


def read_kind(path: Path) -> dict[str, str]:
    """The header of a buffer's file. Raises `TaskBufferError` for any other file."""
    try:
        header = pl.read_parquet_metadata(path)
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError) as error:
        raise TaskBufferError(f"{path}: not a Parquet file ({' '.join(str(error).split())[:80]})") from None
    if header.get("format") != SNAPSHOT:
        raise TaskBufferError(f"{path}: a Parquet file, but not an {SNAPSHOT}")
    if header.get("schema") != str(SCHEMA):
        raise TaskBufferError(f"{path}: schema {header.get('schema')} is not supported, only {SCHEMA} is")
    return header


def _rows(lineage: Lineage, measured: Mapping[tuple[int, str], float]) -> Iterator[tuple[Any, ...]]:
    for version in lineage.versions:
        task, head = version.task, version is lineage.head
        for name, text in (("env", task.env), ("instruction", task.instruction)):
            if SURROGATE.search(text):
                raise TaskBufferError(
                    f"slot {lineage.slot}: the {name} of v{version.number} has a lone surrogate, which Parquet cannot "
                    "hold; give the file a name in .jsonl"
                )
        yield (
            lineage.slot,
            version.number,
            head,
            version.iteration,
            version.direction.value if version.direction else None,
            version.accuracy_before,
            version.accuracy,
            measured.get((lineage.slot, task.task_id)) if head else None,
            task.env,
            task.instruction,
            canonical_json(task.payload),
            canonical_json(task.metadata),
            task.task_id,
            task_key(task.task_id),
            sorted(lineage.tried) if head else None,
        )


def _lineages(frame: pl.DataFrame) -> Iterator[Lineage]:
    for slot, rows in groupby(frame.iter_rows(named=True), key=lambda row: row["slot"]):
        versions: list[Version] = []
        tried: list[str] = []
        for row in rows:
            versions.append(_version(row))
            tried += row["tried"] or []
        yield Lineage(fields.count({"slot": slot}, "slot"), tuple(versions), frozenset(tried))


def _version(row: Mapping[str, Any]) -> Version:
    """A row's version, checked as a line of a snapshot is: cells may be null or of other types."""
    try:
        parts = {name: parse(fields.text(row, name).encode()) for name in ("payload", "metadata")}
        return Version.from_json({**row, "task": {**row, **parts}})
    except ValueError as error:
        raise TaskBufferError(f"slot {row['slot']}: {error}") from None
