"""Export and import of buffers: as JSONL or Parquet with the whole history, or as one game folder a task.

A task family whose tasks are files has two static methods (`core.protocols.GameFiles`): `write_game(task, root)` writes
a task below `root` and returns its folder, `read_game(folder)` reads it. `slots.json` keeps slots and metadata, which
games cannot, and the names of all files, so that the next export knows whether the folder is an export's alone.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from rlanything.buffer import fields
from rlanything.buffer.fields import TaskBufferError
from rlanything.buffer.model import Lineage, TaskBuffer, Version
from rlanything.buffer.storage import (
    FOLDER,
    read_header,
    snapshot_iteration,
    snapshot_path,
    write_snapshot,
)
from rlanything.buffer.views.find.runs import run_around
from rlanything.buffer.views.find.source import PARQUET, Source, read_buffer
from rlanything.buffer.views.place import free_place
from rlanything.core.errors import ConfigError
from rlanything.core.protocols import GameFiles
from rlanything.core.types import Json, Task
from rlanything.files import atomic
from rlanything.files.project import PARAMS
from rlanything.files.reader import FileError, read_object
from rlanything.targets import named_class

GAMES = "rlanything task buffer games"
MANIFEST = "slots.json"
_GAME_FILE = "traj_data.json"

Writer = Callable[[Task, Path], Path]
Reader = Callable[[Path], Task]


def export_buffer(source: Source, target: Path, write_game: Writer | None) -> int:
    """Write a buffer as .jsonl or .parquet, by the name of `target`, or as games below it; how many slots.

    Of what is there, only what an export wrote is replaced, and nothing is written into a run. Raises `TaskBufferError`
    for another place.
    """
    _require_no_run(target)
    if write_game is not None:
        return export_games(source.buffer, target, write_game)
    if target.suffix in (PARQUET, ".jsonl"):
        free_place(target, _not_an_export, "export")
    if target.suffix == PARQUET:
        from rlanything.buffer.views.columns.parquet import write_parquet

        write_parquet(source.buffer, target, source.accuracies)
    elif target.suffix == ".jsonl":
        write_snapshot(source.buffer, target)
    else:
        raise TaskBufferError(f"{target}: end its name in .jsonl or {PARQUET}, or ask for --games")
    return len(source.buffer)


def _require_no_run(target: Path) -> None:
    """Raise `TaskBufferError` for a place in a run: readers would take what is there for the run's own."""
    if snapshot_iteration(target.name) is not None:
        raise TaskBufferError(f"export {target}: is named like a snapshot of a run; take another name")
    run = run_around(target)
    if run is not None:
        raise TaskBufferError(
            f"export {target}: lies in the run {run}, which nothing is added to; name another place"
        )


def _not_an_export(place: Path) -> str:
    """Why what is at a place is not replaced; '' for an exported buffer."""
    if place.is_dir():
        return "is a folder; name a file"
    try:
        if place.suffix == PARQUET:
            from rlanything.buffer.views.columns.parquet import read_kind

            read_kind(place)
        else:
            read_header(place)
    except TaskBufferError as error:
        return f"exists and is no exported buffer ({error}); name another file"
    return ""


def import_buffer(
    path: Path, target: Path, read_game: Reader | None = None, *, restart: bool = False
) -> TaskBuffer:
    """Make `target` a run that starts with the buffer in `path`; restart: with its current tasks as v0s.

    Raises `TaskBufferError` when `target` has a buffer already.
    """
    where = target / FOLDER
    if where.exists() and any(
        not path.name.startswith(".") for path in where.iterdir()
    ):  # others are of a kill
        raise TaskBufferError(f"{where} exists already: a buffer is never written over")
    buffer = import_games(path, read_game) if read_game else read_buffer(path)
    if restart:
        heads = ((lineage.slot, lineage.head.task) for lineage in buffer.lineages)
        buffer = TaskBuffer(tuple(Lineage(slot, (Version(0, task),)) for slot, task in heads))
    write_snapshot(buffer, snapshot_path(where, 0))
    return buffer


def export_games(buffer: TaskBuffer, target: Path, write_game: Writer) -> int:
    """Write the current task of every slot as a game in the folder `target`. A game has no history.

    The folder appears whole. One that is there is replaced if it is empty, or has an export's games and nothing else.
    """
    with free_place(target, _not_games, "export").folder() as new:
        rows = [_written(lineage, new, write_game) for lineage in buffer.lineages]
        manifest = {"format": GAMES, "schema": 1, "slots": rows, "files": _below(new)}
        atomic.write_text(new / MANIFEST, json.dumps(manifest, indent=1, sort_keys=True) + "\n")
    return len(rows)


def _written(lineage: Lineage, root: Path, write_game: Writer) -> dict[str, Json]:
    task = lineage.head.task
    try:
        folder = write_game(task, root)
    except ValueError as error:
        raise TaskBufferError(f"slot {lineage.slot}: {error}") from error
    place = folder.relative_to(root).as_posix()
    return {"slot": lineage.slot, "folder": place, "task_id": task.task_id, "metadata": task.metadata}


def _not_games(place: Path) -> str:
    """Why what is at a place is not replaced; '' for an empty folder, and for the games of an export alone."""
    if not place.is_dir():
        return "is a file; name a folder"
    there = set(_below(place))
    if not there:
        return ""
    try:
        manifest = _manifest(place / MANIFEST)
        if "files" not in manifest:
            return "holds games of an earlier version, which does not list its files; name another folder"
        listed = {str(name) for name in fields.sequence(manifest, "files")}
    except (FileError, TaskBufferError) as error:
        return f"holds files, and not the games of an export ({error}); name another folder"
    strange = sorted(there ^ {*listed, MANIFEST})
    return f"{strange[0]!r} is not as the export left it; name another folder" if strange else ""


def _below(folder: Path) -> list[str]:
    """What is in a folder and the folders in it, but for what links lead to."""
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*"))


def import_games(folder: Path, read_game: Reader) -> TaskBuffer:
    """The games below a folder as v0s, by `slots.json`, or in the order of their names if there is none."""
    path = folder / MANIFEST
    if path.is_file():
        try:
            rows = fields.sequence(_manifest(path), "slots")
            return TaskBuffer(tuple(_listed(folder, row, read_game) for row in rows if isinstance(row, dict)))
        except TaskBufferError as error:
            raise TaskBufferError(f"{path}: {error}") from error
    games = sorted(file.parent for file in folder.rglob(_GAME_FILE))
    if not games:
        raise TaskBufferError(f"{folder}: no games there (a game is a folder with a {_GAME_FILE})")
    return TaskBuffer.start(_game(game, read_game) for game in games)


def game_files(root: Path) -> tuple[Writer, Reader]:
    """The functions of the project's family that write and read games. Raises `TaskBufferError` if there are none."""
    from rlanything.files.yaml_file import read_mapping

    path = root / PARAMS
    try:
        target = str(read_mapping(path)["env"]["_target_"])
    except (FileError, LookupError, TypeError) as error:
        raise TaskBufferError(f"{path}: it names no task family in env._target_ ({error})") from None
    try:
        family: Any = named_class({"_target_": target}, "env", GameFiles)
    except ConfigError as error:
        raise TaskBufferError(f"{path}: {error}") from None
    return family.write_game, family.read_game


def _manifest(path: Path) -> Mapping[str, Any]:
    data = read_object(path)
    if data.get("format") != GAMES or data.get("schema") != 1:
        raise TaskBufferError("not a list of games of schema 1")
    return data


def _listed(folder: Path, row: Mapping[str, Any], read_game: Reader) -> Lineage:
    slot, place = fields.count(row, "slot"), fields.text(row, "folder")
    if "\0" in place or not (game := (folder / place).resolve()).is_relative_to(folder.resolve()):
        raise TaskBufferError(f"slot {slot} points outside the folder ({place!r})")
    metadata = row.get("metadata", {})
    if not isinstance(metadata, dict):
        raise TaskBufferError(f"slot {slot}: its metadata must be an object")
    task = replace(_game(game, read_game), metadata=metadata)
    if task.task_id != fields.text(row, "task_id"):
        raise TaskBufferError(f"slot {slot}: the game in {place} is not the task {row['task_id'][:12]}")
    return Lineage(slot, (Version(0, task),))


def _game(folder: Path, read_game: Reader) -> Task:
    try:
        return read_game(folder)
    except ValueError as error:
        raise TaskBufferError(str(error)) from error
