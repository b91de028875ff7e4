"""What a Parquet file says twice: every column that follows from other columns is computed again and compared.

| column | follows from |
|---|---|
| number, head | the order of the rows |
| task_id | env, instruction, payload |
| key | task_id |
| kind.* | payload and metadata of the heads |

The header's counts follow from the rows. The other columns are the buffer itself, and must hold what a buffer may hold.
`measured` is the last acc(q) of a head. A file has no rollouts, so nothing in it says whether that is true. Of the
metadata only those of heads are read: no column follows from the others.

A file of millions of rows is read part by part, and nearly all of the work is done for whole columns.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from rlanything.buffer.fields import TaskBufferError
from rlanything.buffer.views.columns import shapes
from rlanything.buffer.views.columns.kinds import Kinds
from rlanything.buffer.views.columns.rows import first_wrong, refused
from rlanything.buffer.views.columns.table import COLUMNS, KEY_DIGITS, KIND
from rlanything.core.ids import canonical_json
from rlanything.core.types import Direction
from rlanything.files.reader import FileError, parse, require_fits

_ROWS = 100_000
_BYTES = 32 << 20
"""A part has at most so many rows, and its tasks at most so many bytes of text, except where one row has more."""
_TEXTS = ("env", "instruction", "payload", "metadata")
_ESCAPED = r'["\\\x00-\x1f]'
"""The characters that JSON escapes."""


def require_derived(path: Path, header: Mapping[str, str]) -> None:
    """Compare every column that follows from others.

    Raises `TaskBufferError` with the row, the column, what it says, and what follows.
    """
    file = pl.scan_parquet(path)
    kinds = [name for name in file.collect_schema().names() if name.startswith(KIND)]
    typed = _typed(file, {**COLUMNS, **dict.fromkeys(kinds, pl.String)})
    _require_cells(typed, kinds)
    rows, slots = _require_order(typed)
    for name, found in (("slots", slots), ("accepted", rows - slots)):
        if header.get(name) != str(found):
            raise TaskBufferError(f"the header says {header.get(name)} {name}, the file has {found}")
    compared = Kinds(kinds, slots)
    for part in _parts(path, typed, rows):
        made = part.with_columns(*_canonical(part, "payload"))
        _require_ids(made)
        heads = made.filter("head")
        compared.add(heads.with_columns(*_canonical(heads, "metadata")))
    compared.finish()


def _typed(file: pl.LazyFrame, types: Mapping[str, Any]) -> pl.LazyFrame:
    """The columns, each of its type. A column of nulls, or of other numbers of its kind, is taken as such."""
    schema = file.collect_schema()
    for name, wanted in types.items():
        if name not in schema:
            raise TaskBufferError(f"column {name!r} is missing")
        found = schema[name]
        number = wanted.is_numeric() and found.is_numeric() and not (wanted.is_integer() and found.is_float())
        if (
            not number
            and found not in (wanted, pl.Null)
            and not (wanted.is_nested() and found == pl.List(pl.Null))
        ):
            raise TaskBufferError(f"column {name!r} must hold {wanted}, it holds {found}")
    return file.select(pl.col(name).cast(wanted) for name, wanted in types.items())


def _require_cells(file: pl.LazyFrame, kinds: list[str]) -> None:
    """What can be said of each row alone."""
    _require(file, list(_rules(kinds)))
    # Few slots have tries, and looking into lists is slow.
    _require(file.filter(pl.col("tried").list.len() > 0), [_tries()])


def _require(file: pl.LazyFrame, rules: list[tuple[str, pl.Expr, str]]) -> None:
    """Raise `TaskBufferError` for the first row that is wrong by one of the rules (see `_rules`)."""
    wrong = pl.any_horizontal(wrong.fill_null(True) for _, wrong, _ in rules)
    found = file.filter(wrong).head(1).collect(engine="streaming")
    for name, wrong, follows in rules:
        if found.filter(wrong.fill_null(True)).height:
            raise refused(found.row(0, named=True), name, follows)


def _rules(kinds: list[str]) -> Iterator[tuple[str, pl.Expr, str]]:
    """(column, what a wrong row fulfils, what must hold instead)."""
    for name in ("slot", "number", "iteration"):
        yield name, pl.col(name).is_null() | (pl.col(name) < 0), "it must be a whole number of at least 0"
    for name in ("head", *_TEXTS, "task_id"):
        yield name, pl.col(name).is_null(), "every row must have one"
    ways = [way.value for way in Direction]
    way = pl.col("direction")
    yield "direction", way.is_not_null() & ~way.is_in(ways), f"it must be {' or '.join(ways)}"
    for name in ("accuracy_before", "accuracy", "measured"):
        share = pl.col(name)
        yield name, share.is_not_null() & ~share.is_between(0, 1), "it must lie in [0, 1]"
    for name in ("measured", "tried", *kinds):
        yield name, ~pl.col("head") & pl.col(name).is_not_null(), "only the row of a slot's head has one"
    digits = pl.col("task_id").str.head(KEY_DIGITS).str.to_integer(base=16, strict=False)
    follows = f"it must be the first {KEY_DIGITS} digits of task_id as a number"
    yield "key", pl.col("key").is_null() | pl.col("key").ne_missing(digits), follows


def _tries() -> tuple[str, pl.Expr, str]:
    """The rule for the tries of a row that has some."""
    each = pl.element()
    known = each.str.contains("^[0-9a-f]{64}$").fill_null(False)
    broken = pl.col("tried").list.eval(~known | (each <= each.shift()).fill_null(False)).list.any()
    return "tried", broken, "it must be ids of tasks (64 hex digits), sorted, each once"


def _require_order(file: pl.LazyFrame) -> tuple[int, int]:
    """What the order of the rows says; how many rows and slots there are."""
    rows = file.select("slot", "number", "head", "iteration").collect(engine="streaming")
    slot, iteration = rows["slot"].to_numpy(), rows["iteration"].to_numpy()
    if (np.diff(slot) < 0).any():
        raise TaskBufferError("its rows are not sorted by slot")
    first = np.diff(slot, prepend=-1) > 0
    starts = np.flatnonzero(first)
    number = np.arange(len(slot)) - np.repeat(starts, np.diff(np.append(starts, len(slot))))
    head = np.append(first[1:], True)[: len(slot)]
    _require_same(rows, "number", number, "follows from the order of the rows of its slot")
    _require_same(rows, "head", head, "follows from the order of the rows: a slot's last row is its head")
    fallen = np.flatnonzero((np.diff(iteration, prepend=0) < 0) & ~first)
    if len(fallen):
        before = iteration[fallen[0] - 1]
        raise refused(
            rows.row(int(fallen[0]), named=True), "iteration", f"the version before it is of {before}"
        )
    return len(slot), len(starts)


def _require_same(rows: pl.DataFrame, column: str, found: np.ndarray[Any, Any], follows: str) -> None:
    wrong = np.flatnonzero(rows[column].to_numpy() != found)
    if len(wrong):
        raise refused(rows.row(int(wrong[0]), named=True), column, f"{found[wrong[0]].item()!r} {follows}")


def _parts(path: Path, file: pl.LazyFrame, rows: int) -> Iterator[pl.DataFrame]:
    """The tasks of the file with their ids and kinds, part by part."""
    kept = [name for name in file.collect_schema().names() if name.startswith(KIND)]
    wanted = file.select("slot", "number", "head", *_TEXTS, "task_id", *kept)
    for start in range(0, rows, _ROWS):
        part = wanted.slice(start, _ROWS).collect()
        lengths = (pl.col(name).str.len_bytes().cast(pl.Int64) for name in _TEXTS)
        sizes = part.select(pl.sum_horizontal(lengths)).to_series()
        try:
            require_fits(path, int(sizes.to_numpy().max(initial=0)))
        except FileError as error:
            raise TaskBufferError(str(error)) from None
        begin = 0
        for length in (sizes.cum_sum() // _BYTES).rle().struct.field("len"):
            yield part.slice(begin, length)
            begin += length


def _canonical(part: pl.DataFrame, column: str) -> tuple[pl.Series, pl.Series]:
    """A column of JSON objects in canonical form, and `<column>_shape`: their shapes, null where one is not clean."""
    texts = part[column]
    shape = shapes.shapes(texts)
    odd = pl.Series([each for each in shape.unique() if not shapes.is_clean(each)], dtype=pl.String)
    if odd.len():
        strange = shape.is_in(odd.implode())
        known = texts.filter(strange).unique()
        made = [_canonical_text(part, column, text) for text in known]
        texts = texts.replace(known, pl.Series(made, dtype=pl.String))
        shape = pl.select(pl.when(~strange).then(shape)).to_series()
    return texts.alias(column), shape.alias(f"{column}_shape")


def _canonical_text(part: pl.DataFrame, column: str, text: str) -> str:
    try:
        value = parse(text.encode())
        if isinstance(value, dict):
            return canonical_json(value)
        problem = f"it must be a JSON object, found {type(value).__name__}"
    except ValueError as error:
        problem = str(error)
    raise refused(part.row(by_predicate=pl.col(column) == text, named=True), column, problem)


def _require_ids(part: pl.DataFrame) -> None:
    """Compare the task ids with the tasks. See `core.types.Task.task_id`."""
    text = pl.concat_str(
        pl.lit('{"env":"'), _escaped(part["env"]), pl.lit('","instruction":"'), _escaped(part["instruction"]),
        pl.lit('","payload":'), part["payload"], pl.lit("}"),
    )  # fmt: skip
    contents = part.select(text).to_series().cast(pl.Binary)
    digests = pl.Series([hashlib.sha256(each).digest() for each in contents], dtype=pl.Binary)
    place = first_wrong(part["task_id"], digests.bin.encode("hex"))
    if place is not None:
        follows = f"{digests[place].hex()} follows from env, instruction and payload"
        raise refused(part.row(place, named=True), "task_id", follows)


def _escaped(texts: pl.Series) -> pl.Series:
    """Texts as canonical JSON writes them, without the quotes around them."""
    escaped = texts.str.contains(_ESCAPED)
    if not escaped.any():
        return texts
    known = texts.filter(escaped).unique()
    return texts.replace(known, pl.Series([canonical_json(text)[1:-1] for text in known], dtype=pl.String))
