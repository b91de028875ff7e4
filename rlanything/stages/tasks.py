"""Stage `tasks`: writes the training tasks and the frozen evaluation panels, each with a content hash.

The training tasks are made by the environment, or they are the current tasks of a task buffer (`tasks.start`). The
configuration also has the digest of this buffer. So DVC runs the stage again for another buffer, and the stage refuses
a file that has changed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from rlanything.buffer.fields import TaskBufferError
from rlanything.buffer.model import TaskBuffer
from rlanything.buffer.storage import read_snapshot
from rlanything.config import Config, TasksConfig
from rlanything.core.errors import ConfigError
from rlanything.core.ids import content_id
from rlanything.core.protocols import TaskFamily
from rlanything.core.seeds import derive_seed
from rlanything.core.splits import TRAIN
from rlanything.core.types import Task
from rlanything.files import atomic, locks
from rlanything.files.hashes import tree_hash
from rlanything.files.records import write_json, write_lines
from rlanything.runs import families
from rlanything.runs.layout import Layout
from rlanything.stages import ALL, BOOTSTRAP, TASKS
from rlanything.stages.measured import forget, measured


def make_tasks(config: Config, root: Path) -> None:
    """Write data/tasks/<name>.jsonl and manifest.json with one rename.

    Raises `ConfigError`, also for an invalid task.
    """
    place = Layout(root).manifest.parent
    with locks.stage(root, TASKS, place, apart=ALL):
        splits = make_splits(config, root)
        with atomic.whole(place) as folder:
            _write(splits, folder)
            _forget_measured(Layout(root), folder)


def _forget_measured(layout: Layout, new: Path) -> None:
    """Remove what was measured with the last tasks, unless the new ones are the same to the byte."""
    found, old = measured(layout), layout.manifest.parent
    if found and not (old.is_dir() and tree_hash(old) == tree_hash(new)):
        forget(layout, found, TASKS, "other tasks", before=(BOOTSTRAP,))  # base models learned from the tasks


def _write(splits: Mapping[str, list[Task]], folder: Path) -> None:
    manifest: dict[str, dict[str, int | str]] = {}
    for split, tasks in splits.items():
        write_lines(folder / f"{split}.jsonl", [task.to_json() for task in tasks])
        digest = panel_hash(tasks)
        manifest[split] = {"tasks": len(tasks), "hash": digest}
        print(f"tasks: {split}: {len(tasks)} tasks, hash {digest[:12]}")
    write_json(folder / "manifest.json", manifest)


def make_splits(config: Config, root: Path) -> dict[str, list[Task]]:
    """The training tasks (`train`) and the tasks of every panel, by name. All tasks are valid.

    No task is in two panels of one split, and no training task is in a panel. Raises `ConfigError` otherwise.
    """
    family, tasks = families.family(config), config.tasks
    families.check_splits(family, tasks)
    if tasks.start is None:
        splits = {TRAIN: _drawn(config, family, TRAIN, tasks.train)}
    else:
        splits = {TRAIN: start_tasks(tasks, root, family)}
    held = {TRAIN: list(splits[TRAIN])}
    # A panel with the name of its split is drawn first, so that more panels of the split do not change its tasks.
    for name in sorted(tasks.panels, key=lambda name: name != tasks.split(name)):
        split = tasks.split(name)
        taken = held.setdefault(split, [])
        splits[name] = _drawn(config, family, split, tasks.panels[name].tasks, taken, name)
        taken += splits[name]
        check_apart(tasks, splits[TRAIN], name, splits[name])
    for name, found in splits.items():
        _check_valid(family, name, found)
    return {name: splits[name] for name in (TRAIN, *tasks.panels)}


def _drawn(
    config: Config, family: TaskFamily, split: str, count: int, taken: Sequence[Task] = (), panel: str = ""
) -> list[Task]:
    """`count` distinct tasks of a split that are not in `taken`.

    If `taken` is not empty, the seed depends on `panel`.
    """
    wanted = count + len(taken)
    seed = derive_seed(config.seed, "tasks", split, *([panel] if taken else []))
    made = families.make(family, split, wanted, seed)
    found = {task.task_id: task for task in made}
    if len(found) != wanted:
        raise ConfigError(
            f"tasks: {wanted} tasks of split {split} are wanted: the environment made only {len(found)} distinct ones"
        )
    held = {task.task_id for task in taken}
    return [task for name, task in found.items() if name not in held][:count]


def panel_hash(tasks: list[Task]) -> str:
    """Content hash of a panel. It does not depend on the order of the tasks."""
    return content_id(sorted(task.task_id for task in tasks))


def _check_valid(family: TaskFamily, name: str, tasks: list[Task]) -> None:
    for task in tasks:
        reason = family.validate(task.copy())
        if reason:
            raise ConfigError(
                f"data/tasks/{name}.jsonl: task {task.task_id[:12]} ({task.instruction!r}) must not run: {reason}"
            )


def start_tasks(config: TasksConfig, root: Path, family: TaskFamily) -> list[Task]:
    """The current tasks of the buffer `config.start`, in the order of its slots.

    Raises `ConfigError` for a file that is not a buffer, for another digest or number of tasks, and for a task of
    another environment.
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


def check_apart(config: TasksConfig, tasks: Iterable[Task], panel: str, held: Iterable[Task]) -> None:
    """Raise `ConfigError` when a training task is on a panel: models would be measured on their training tasks."""
    measured = {task.task_id for task in held}
    for task in tasks:
        if task.task_id in measured:
            found = f"task {task.task_id[:12]} ({task.instruction!r})"
            raise ConfigError(
                f"tasks.panels.{panel}: {found} is a training task too; set another seed, or other files or splits"
                if config.start is None
                else f"tasks.start = {config.start!r}: {found} is on the panel {panel}; leave it out of the buffer, or "
                "set another seed"
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
