"""Which cell of a Parquet file is wrong, and how that is said."""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl

from rlanything.buffer.fields import TaskBufferError
from rlanything.core.types import Json

_LONGEST = 80
"""Characters of a cell that an error shows."""


def first_wrong(said: pl.Series, expected: pl.Series) -> int | None:
    """The first place where two columns differ; None where they are the same."""
    wrong = said.ne_missing(expected)
    return wrong.arg_max() if wrong.any() else None


def refused(row: Mapping[str, Json], column: str, follows: str) -> TaskBufferError:
    """The error for a cell of a row. follows: what it should be, and from what that follows."""
    said = repr(row[column])
    shown = said if len(said) <= _LONGEST else f"{said[:_LONGEST]}..."
    return TaskBufferError(
        f"slot {row['slot']}, v{row['number']}: column {column!r} says {shown}, but {follows}"
    )
