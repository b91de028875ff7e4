"""Buffers: snapshots, events, Parquet files, lists of games, and everything that the views make of them."""

from __future__ import annotations

import hashlib
import io
import json
import shutil
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import polars as pl
from fuzz_mutations import json_bytes, json_lines
from fuzz_target import HERE, Target, file_of

from envs.alfworld.family import AlfworldFamily
from envs.coding.family import CodingFamily
from rlanything import cli
from rlanything.buffer import Lineage, TaskBuffer, Version, read_events, read_snapshot, write_snapshot
from rlanything.buffer.fields import canonical_line
from rlanything.buffer.views.columns.parquet import read_parquet, read_table, write_frame, write_parquet
from rlanything.buffer.views.columns.table import KIND
from rlanything.buffer.views.find.source import read_buffer
from rlanything.buffer.views.transfer import import_buffer
from rlanything.core.errors import RLAnythingError, UserError
from rlanything.core.ids import content_id
from rlanything.core.types import Direction

RECORDED = HERE.parent / "buffer" / "chained"
FAMILIES = {family.name: family for family in (AlfworldFamily(), CodingFamily())}
FILE = "iter_0000.jsonl"


def _recorded(name: str) -> Callable[[], list[bytes]]:
    return lambda: [(RECORDED / name).read_bytes()]


def _tasks() -> TaskBuffer:
    return TaskBuffer.start([task for family in FAMILIES.values() for task in family.make("train", 2, 1)])


def written(buffer: TaskBuffer, write: Callable[[TaskBuffer, Path], Any], name: str) -> bytes:
    """The bytes of the file that `write` makes."""
    with TemporaryDirectory() as folder:
        write(buffer, Path(folder) / name)
        return (Path(folder) / name).read_bytes()


def snapshots() -> list[bytes]:
    """A buffer with a history, and one of real tasks."""
    return [*_recorded(FILE)(), written(_tasks(), write_snapshot, FILE)]


def _identified(task: Any) -> Any:
    """The task with the id that its content has."""
    try:
        content = {key: task[key] for key in ("env", "instruction", "payload")}
        return {**task, "task_id": content_id(content)}
    except (KeyError, TypeError, ValueError, RecursionError):
        return task


def sealed(data: bytes) -> bytes:
    """A snapshot whose ids, counts and digest are those of its content, as somebody who changes a buffer makes them."""
    try:
        header, *lines = json_lines(data)
        for line in lines:
            for version in line["versions"]:
                version["task"] = _identified(version["task"])
        rows = [canonical_line(line) for line in lines]
        digests = b"".join(hashlib.sha256(row).digest() for row in rows)
        counts = {"slots": len(rows), "accepted": sum(len(line["versions"]) - 1 for line in lines)}
        header |= {**counts, "digest": hashlib.sha256(digests).hexdigest()}
        return b"".join(row + b"\n" for row in (canonical_line(header), *rows))
    except (KeyError, TypeError, ValueError, RecursionError):
        return data


def chained(data: bytes) -> bytes:
    """Events whose ids and links fit, whatever they say."""
    try:
        header, *events = json_lines(data)
        head, rows = header["start"], [canonical_line(header)]
        for event in events:
            row = {**event, "previous": head, "task": _identified(event["task"])}
            rows.append(canonical_line(row))
            head = hashlib.sha256(rows[-1]).hexdigest()
        return b"".join(row + b"\n" for row in rows)
    except (KeyError, TypeError, ValueError, RecursionError):
        return data


def quietly(*words: str) -> None:
    """A command of the project, as on a terminal. What it refuses is an error."""
    with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()) as said:
        code = cli.main(["--traceback", *words])
    if code == 2:
        raise UserError(said.getvalue())


def views(folder: Path, run: str, target: str) -> None:
    """Every question of `rlanything buffer` about a run, as text and as JSON."""
    root = ["--root", str(folder), "buffer"]
    refused: list[str] = []
    for words in (
        ["ls", run], ["show", run, target], ["log", run], ["diff", run, "other"], ["drift", run], ["verify", run],
        ["export", run, str(folder / "out.parquet")], ["export", run, str(folder / "out.jsonl")], ["ls", run,
    "--json"],
    ):  # fmt: skip
        try:
            quietly(*root, *words)
        except RLAnythingError as error:
            refused.append(str(error))
    if refused:
        raise UserError("\n".join(refused))


def _use(buffer: TaskBuffer) -> None:
    """What a run does with the tasks of a buffer that it begins with."""
    for lineage in buffer.lineages:
        task = lineage.head.task
        family = FAMILIES.get(task.env)
        if family is not None and not family.validate(task):
            family.describe(task)
            if isinstance(family, AlfworldFamily):
                environment = family.environment()
                seen = environment.reset(task, 0)
                environment.step(seen.actions[0] if seen.actions else "look")
                environment.close()


def _read_sealed(data: bytes, folder: Path) -> None:
    path = folder / "run" / "buffer" / FILE
    for place in (path.parent, folder / "other" / "buffer"):
        shutil.copytree(RECORDED, place, ignore=shutil.ignore_patterns("iter_0004*", "events*"))
    path.write_bytes(sealed(data))
    _use(read_snapshot(path))
    views(folder, "run", "0")
    assert read_buffer(folder / "out.parquet") == read_snapshot(folder / "out.jsonl") == read_snapshot(path)


def _read_chained(data: bytes, folder: Path) -> None:
    for name in ("run", "other"):
        shutil.copytree(RECORDED, folder / name / "buffer")
    path = folder / "run" / "buffer" / "events.jsonl"
    path.write_bytes(chained(data))
    read_events(path)
    views(folder, "run", "1")


def _parquet() -> list[bytes]:
    buffers = [TaskBuffer.start([]), read_snapshot(RECORDED / "iter_0004.jsonl"), _tasks()]
    return [written(buffer, write_parquet, "buffer.parquet") for buffer in buffers]


def _cells() -> list[bytes]:
    found = []
    for buffer in (read_snapshot(RECORDED / "iter_0004.jsonl"), _tasks()):
        rows = pl.read_parquet(io.BytesIO(written(buffer, write_parquet, "buffer.parquet"))).to_dicts()
        header = {"slots": len(buffer), "accepted": buffer.accepted, "digest": buffer.digest}
        found.append(json_bytes({**header, "rows": rows}))
    return found


def _read_both(path: Path) -> None:
    read_table(path)
    read_parquet(path)


def _read_cells(data: bytes, folder: Path) -> None:
    """A Parquet file with any cells. What Polars cannot write is no input."""
    path = folder / "buffer.parquet"
    try:
        given = json.loads(data)
        frame = pl.DataFrame(given["rows"], infer_schema_length=None)
        counts = (
            int(given.get("slots", 5)),
            int(given.get("accepted", 3)),
        )  # what an older input was made with
        write_frame(frame.lazy(), path, *counts, str(given["digest"]))
    except (Exception, pl.exceptions.PanicException):
        return
    _read_both(path)


@cache
def _honest() -> tuple[TaskBuffer, pl.DataFrame]:
    """A buffer with a history and with kinds of tasks, and the columns of its file."""
    first, second = _tasks(), AlfworldFamily().make("train", 2, 9)
    versions = [Version(1, task, 1, 0.0, 0.5, Direction.EASIER) for task in second]
    kept = [Lineage(x.slot, (x.head, *versions[x.slot : x.slot + 1])) for x in first.lineages]
    buffer = TaskBuffer(tuple(kept))
    return buffer, pl.read_parquet(io.BytesIO(written(buffer, write_parquet, "buffer.parquet")))


def _computed(frame: pl.DataFrame) -> pl.DataFrame:
    """The columns that follow from the others."""
    kinds = sorted(name for name in frame.columns if name.startswith(KIND))
    return frame.select("number", "head", "task_id", "key", *kinds)


def _columns() -> list[bytes]:
    return [json_bytes(_computed(_honest()[1]).to_dicts())]


def _read_computed(data: bytes, folder: Path) -> None:
    """An honest core beside any computed columns: a comparison and an import refuse all but the right ones."""
    path = folder / "buffer.parquet"
    buffer, honest = _honest()
    right = _computed(honest)
    try:
        given = pl.DataFrame(json.loads(data), infer_schema_length=None)
        frame = pl.concat([honest.drop(right.columns), given], how="horizontal", strict=True)
        write_frame(frame.lazy(), path, len(buffer), buffer.accepted, buffer.digest)
    except (Exception, pl.exceptions.PanicException):
        return
    refused: list[str] = []
    for read in (read_table, read_parquet):
        try:
            read(path)
            assert _computed(pl.read_parquet(path)).cast(dict(right.schema)).equals(right)
        except RLAnythingError as error:
            refused.append(str(error))
    if refused:
        raise UserError("\n".join(refused))


def _games() -> list[bytes]:
    task = FAMILIES["alfworld"].make("train", 1, 3)[0]
    row = {"slot": 0, "folder": "game", "task_id": task.task_id, "metadata": {"split": "train"}}
    listed = {"format": "rlanything task buffer games", "schema": 1, "slots": [row]}
    return [json_bytes(listed)]


def _read_games(path: Path) -> None:
    (path.parent / "game").mkdir()
    import_buffer(
        path.parent, path.parent / "run", lambda folder: FAMILIES["alfworld"].make("train", 1, 3)[0]
    )
    read_snapshot(path.parent / "run" / "buffer" / FILE)


TARGETS = [
    Target("snapshot", file_of(FILE, read_snapshot), snapshots, "lines", file=FILE),
    Target("snapshot-sealed", _read_sealed, snapshots, "lines", examples=10),
    Target(
        "events",
        file_of("events.jsonl", read_events),
        _recorded("events.jsonl"),
        "lines",
        file="events.jsonl",
    ),
    Target("events-chained", _read_chained, _recorded("events.jsonl"), "lines", examples=6),
    Target("parquet", file_of("buffer.parquet", _read_both), _parquet, file="buffer.parquet", examples=4),
    Target("parquet-cells", _read_cells, _cells, "json", file="buffer.parquet", examples=4),
    Target("parquet-computed", _read_computed, _columns, "json", file="buffer.parquet", examples=6),
    Target("games-list", file_of("slots.json", _read_games), _games, "json", file="slots.json"),
]
