"""Stage `tasks`: the training tasks and the frozen evaluation panels, each with a content hash.

The training tasks are made by the environment, or are the current tasks of a task buffer that the configuration names
with its digest. The digest lets DVC run the stage again for another buffer, and refuses a file that was changed.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path

from rlanything.buffer.fields import TaskBufferError
from rlanything.buffer.model import TaskBuffer
from rlanything.buffer.storage import read_snapshot
from rlanything.config import Config, TasksConfig
from rlanything.core.errors import ConfigError
from rlanything.core.ids import content_id
from rlanything.core.seeds import derive_seed
from rlanything.core.splits import PANELS, SPLITS, TRAIN
from rlanything.core.types import Task, TaskFamily
from rlanything.files import atomic, locks
from rlanything.files.records import write_json, write_lines
from rlanything.runs import families
from rlanything.runs.layout import Layout


def make_tasks(config: Config, root: Path) -> None:
    """Write data/tasks/<split>.jsonl and manifest.json with one rename. Raises `ConfigError` for an invalid task."""
    place = Layout(root).manifest.parent
    with locks.stage(root, "tasks", place, apart=locks.ALL):
        splits = make_splits(config, root)
        with atomic.whole(place) as folder:
            _write(splits, folder)


def _write(splits: Mapping[str, list[Task]], folder: Path) -> None:
    manifest: dict[str, dict[str, int | str]] = {}
    for split, tasks in splits.items():
        write_lines(folder / f"{split}.jsonl", [task.to_json() for task in tasks])
        digest = panel_hash(tasks)
        manifest[split] = {"tasks": len(tasks), "hash": digest}
        print(f"tasks: {split}: {len(tasks)} tasks, hash {digest[:12]}")
    write_json(folder / "manifest.json", manifest)


def make_splits(config: Config, root: Path) -> dict[str, list[Task]]:
    """The checked tasks of every split. Training tasks come from the buffer `tasks.start` where there is one."""
    family, counts = families.family(config), config.tasks.model_dump()
    splits = {}
    for split in SPLITS:
        if split == TRAIN and config.tasks.start is not None:
            tasks = start_tasks(config.tasks, root, family)
        else:
            tasks = families.make(family, split, counts[split], derive_seed(config.seed, "tasks", split))
            _check_distinct(split, tasks, counts[split])
        _check_valid(family, split, tasks)
        splits[split] = tasks
    if config.tasks.start is not None:
        panels = [task for split in PANELS for task in splits[split]]
        check_apart(config.tasks, splits[TRAIN], panels)
    return splits


def panel_hash(tasks: list[Task]) -> str:
    """Content hash of a panel; the order of its tasks does not matter."""
    return content_id(sorted(task.task_id for task in tasks))


def _check_distinct(split: str, tasks: list[Task], wanted: int) -> None:
    if len({task.task_id for task in tasks}) != wanted:
        raise ConfigError(f"tasks.{split} = {wanted}: the environment made only {len(tasks)} distinct tasks")


def _check_valid(family: TaskFamily, split: str, tasks: list[Task]) -> None:
    for task in tasks:
        reason = family.validate(task)
        if reason:
            raise ConfigError(
                f"tasks.{split}: task {task.task_id[:12]} ({task.instruction!r}) must not run: {reason}"
            )


def start_tasks(config: TasksConfig, root: Path, family: TaskFamily) -> list[Task]:
    """The current tasks of the buffer `config.start`, in the order of its slots.

    Raises `ConfigError` for a file that is no such buffer, another digest, another number of tasks, or a foreign task.
    """
    buffer = _read(config, root)
    if buffer.digest != config.start_digest:
        raise ConfigError(
            f"tasks.start_digest = {config.start_digest}: the buffer in {config.start} has another digest; if it is "
            f"the one that is meant, set tasks.start_digest={buffer.digest}"
        )
    if len(buffer) != config.train:
        raise ConfigError(
            f"tasks.train = {config.train}: the buffer in {config.start} has {len(buffer)} slots; set "
            f"tasks.train={len(buffer)}"
        )
    for lineage in buffer.lineages:
        if lineage.head.task.env != family.name:
            raise ConfigError(
                f"tasks.start = {config.start!r}: slot {lineage.slot} holds a task of {lineage.head.task.env!r}, but "
                f"env makes and runs tasks of {family.name!r}"
            )
    return [lineage.head.task for lineage in buffer.lineages]


def check_apart(config: TasksConfig, tasks: Collection[Task], panels: Collection[Task]) -> None:
    """Raise `ConfigError` when a training task of the buffer is on a panel: it would be measured on what it trained."""
    held = {task.task_id for task in panels}
    for task in tasks:
        if task.task_id in held:
            raise ConfigError(
                f"tasks.start = {config.start!r}: task {task.task_id[:12]} ({task.instruction!r}) is on an evaluation "
                "panel; leave it out of the buffer, or set another seed"
            )


def _read(config: TasksConfig, root: Path) -> TaskBuffer:
    path = root / str(config.start)
    if path.suffix != ".jsonl":
        raise ConfigError(
            f"tasks.start = {config.start!r}: it must be a buffer in a .jsonl file; `rlanything buffer export` and "
            "`rlanything buffer import` make one"
        )
    try:
        return read_snapshot(path)
    except TaskBufferError as error:
        raise ConfigError(f"tasks.start = {config.start!r}: {error}") from None
