"""The columns kind.* of a file, computed again from the tasks that are its slots' heads."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import count

import polars as pl

from rlanything.buffer.fields import TaskBufferError
from rlanything.buffer.views.columns import shapes
from rlanything.buffer.views.columns.rows import first_wrong, refused
from rlanything.buffer.views.columns.table import KIND, utf8
from rlanything.buffer.views.tasks.task_fields import NOTHING, KindCount, fields_of, spelled
from rlanything.core.types import Json
from rlanything.files.reader import parse

_ALIKE = 20
"""Tasks of one shape from which columns are faster than task by task."""
_MOST_FIELDS = 2_000_000
"""Different fields that are counted. They are kept until all tasks were read, and take some 300 bytes each."""
_FOLLOWS = "follows from its task"


class Kinds:
    """Compares `named`, the columns kind.* of a file, with its heads, of which there are `slots` in all."""

    def __init__(self, named: Sequence[str], slots: int) -> None:
        self._named = {name.removeprefix(KIND): name for name in named}
        self._slots = slots
        self._counted = KindCount()

    def add(self, heads: pl.DataFrame) -> None:
        """Compare some heads: slot, number, kind.*, payload and metadata as canonical JSON, and the shapes of both.

        The shape of a text is null where it is not clean. Raises `TaskBufferError` for the first wrong cell.
        """
        pair = ("payload_shape", "metadata_shape")
        alike = pl.len().over(pair) >= _ALIKE
        many = pl.all_horizontal(alike, *(pl.col(name).is_not_null() for name in pair))
        for group in heads.filter(many).partition_by(pair):
            self._add_alike(group)
        for row in heads.filter(~many).iter_rows(named=True):
            self._add_one(row)
        if len(self._counted) > _MOST_FIELDS:
            raise TaskBufferError(f"its tasks have more than {_MOST_FIELDS:,} different fields")

    def finish(self) -> None:
        """Raise `TaskBufferError` unless the file has a column for each field that sorts its tasks into kinds."""
        fields = set(self._counted.fields(self._slots))
        for field in sorted(fields ^ self._named.keys()):
            if field in fields:
                raise TaskBufferError(f"column {KIND + field!r} is missing, but its tasks have this field")
            raise TaskBufferError(
                f"there is a column {KIND + field!r}, but this field does not sort its tasks into kinds"
            )

    def _add_alike(self, heads: pl.DataFrame) -> None:
        """Heads of one shape, field by field."""
        places = count()
        payload, metadata = (
            shapes.marked(heads[f"{name}_shape"][0], places) for name in ("payload", "metadata")
        )
        values = heads.select(
            pl.concat_list(shapes.values(heads[name]) for name in ("payload", "metadata"))
        ).to_series()
        fields = {utf8(path): value for path, value in fields_of(payload, metadata).items()}
        for field, value in fields.items():
            column = values.list.get(value.place) if isinstance(value, shapes.Value) else None
            self._counted.add(field, len(heads), _spelled(value, column))
            if field in self._named:
                self._compare(heads, field, _expected(value, column, len(heads)))
        for field in self._named.keys() - fields.keys():
            self._compare(heads, field, pl.Series([NOTHING]).new_from_index(0, len(heads)))

    def _compare(self, heads: pl.DataFrame, field: str, expected: pl.Series) -> None:
        name = self._named[field]
        place = first_wrong(heads[name], expected)
        if place is not None:
            raise refused(heads.row(place, named=True), name, f"{expected[place]!r} {_FOLLOWS}")

    def _add_one(self, row: dict[str, Json]) -> None:
        found = fields_of(parse(row["payload"].encode()), parse(row["metadata"].encode()))
        fields = {utf8(path): spelled(value) for path, value in found.items()}
        for field, value in fields.items():
            self._counted.add(field, 1, (value,))
        for field, name in self._named.items():
            expected = utf8(fields.get(field, NOTHING))
            if row[name] != expected:
                raise refused(row, name, f"{expected!r} {_FOLLOWS}")


def _spelled(value: Json, column: pl.Series | None) -> Iterator[str]:
    """The different values of a field in heads of one shape, spelled one by one as they are asked for."""
    if column is None:
        yield spelled(value)
        return
    for found in column.unique():
        yield spelled(shapes.parsed_value(found))


def _expected(value: Json, column: pl.Series | None, heads: int) -> pl.Series:
    if column is None:
        return pl.Series([utf8(spelled(value))]).new_from_index(0, heads)
    known = column.unique()
    made = [utf8(spelled(shapes.parsed_value(found))) for found in known]
    return column.replace_strict(known, made, return_dtype=pl.String)
