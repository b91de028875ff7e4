"""Stage `tasks`: the starting buffer and the frozen evaluation panels, each with a content hash."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from rlanything.config import Config, ConfigError
from rlanything.core.ids import content_id
from rlanything.core.seeds import derive_seed
from rlanything.core.types import Task, TaskFamily
from rlanything.stages import build, disk, locks
from rlanything.stages.layout import SPLITS, Layout, write_json, write_lines
from rlanything.stages.startbuffer import check_apart, start_tasks


def run(config: Config, root: Path) -> None:
    """Write data/tasks/<split>.jsonl and manifest.json with one rename. Raises `ConfigError` for an invalid task."""
    place = Layout(root).manifest.parent
    with locks.stage(root, "tasks", place):
        splits = make_splits(config, root)
        with disk.whole(place) as folder:
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
    """The tasks of every split, checked: the environment's; where `tasks.start` names a buffer, train's are its own."""
    family, counts = build.family(config), config.tasks.model_dump()
    splits = {}
    for split in SPLITS:
        if split == "train" and config.tasks.start is not None:
            tasks = start_tasks(config.tasks, root, family)
        else:
            tasks = build.make(family, split, counts[split], derive_seed(config.seed, "tasks", split))
            _check_distinct(split, tasks, counts[split])
        _check_valid(family, split, tasks)
        splits[split] = tasks
    if config.tasks.start is not None:
        panels = [task for split in SPLITS if split != "train" for task in splits[split]]
        check_apart(config.tasks, splits["train"], panels)
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
