"""Training tasks from a task buffer instead of fresh ones: its current tasks, checked before a run may start with them.

The configuration names the file and the digest of the buffer in it, so that DVC runs the stage again when another
buffer is meant, and a file that changed unnoticed is refused.
"""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from rlanything.buffer.fields import TaskBufferError
from rlanything.buffer.model import TaskBuffer
from rlanything.buffer.storage import read_snapshot
from rlanything.config import ConfigError, TasksConfig
from rlanything.core.types import Task, TaskFamily


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
