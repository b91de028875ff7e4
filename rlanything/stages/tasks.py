"""Stage `tasks`: the starting buffer and the frozen evaluation panels, each with a content hash."""

from __future__ import annotations

from pathlib import Path

from rlanything.config import Config, ConfigError
from rlanything.core.ids import content_id
from rlanything.core.seeds import derive_seed
from rlanything.core.types import Task, TaskFamily
from rlanything.stages import build
from rlanything.stages.layout import SPLITS, Layout, write_json, write_lines


def run(config: Config, root: Path) -> None:
    """Write data/tasks/<split>.jsonl and manifest.json. Raises `ConfigError` when a task does not validate."""
    layout = Layout(root)
    made = build.family(config)
    counts = config.tasks.model_dump()
    manifest: dict[str, dict[str, int | str]] = {}
    for split in SPLITS:
        tasks = build.make(made, split, counts[split], derive_seed(config.seed, "tasks", split))
        _check(made, split, tasks, counts[split])
        write_lines(layout.tasks(split), [task.to_json() for task in tasks])
        digest = panel_hash(tasks)
        manifest[split] = {"tasks": len(tasks), "hash": digest}
        print(f"tasks: {split}: {len(tasks)} tasks, hash {digest[:12]}")
    write_json(layout.manifest, manifest)


def panel_hash(tasks: list[Task]) -> str:
    """Content hash of a panel; the order of its tasks does not matter."""
    return content_id(sorted(task.task_id for task in tasks))


def _check(made: TaskFamily, split: str, tasks: list[Task], wanted: int) -> None:
    if len({task.task_id for task in tasks}) != wanted:
        raise ConfigError(f"tasks.{split} = {wanted}: the environment made only {len(tasks)} distinct tasks")
    for task in tasks:
        reason = made.validate(task)
        if reason:
            raise ConfigError(
                f"tasks.{split}: task {task.task_id[:12]} ({task.instruction!r}) must not run: {reason}"
            )
