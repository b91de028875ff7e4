"""The task family that the configuration names, and the tasks that are drawn from it."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from rlanything import targets
from rlanything.config import Config, TasksConfig
from rlanything.core.errors import ConfigError, unknown
from rlanything.core.protocols import RunsPrograms, TaskFamily
from rlanything.core.returned.tasks import unstorable
from rlanything.core.seeds import derive_seed
from rlanything.core.splits import PRACTICE, TRAIN
from rlanything.core.types import Task
from rlanything.runs.layout import Layout, read_tasks


def family(config: Config) -> TaskFamily:
    """The task family of the configuration. Raises `ConfigError`."""
    made: TaskFamily = targets.instantiate(config.env, "env", TaskFamily)
    return made


def programs(config: Config) -> dict[str, str]:
    """Name -> version of the programs that the environment runs, where it says so."""
    made = family(config)
    return dict(made.programs()) if isinstance(made, RunsPrograms) else {}


def check_splits(made: TaskFamily, tasks: TasksConfig) -> None:
    """Raise `ConfigError` when the configuration asks for tasks of a split that the environment does not have."""
    known = made.splits()
    if TRAIN not in known and tasks.start is None:
        raise ConfigError(f"env: it has no split {TRAIN!r} to train on: {unknown(TRAIN, known)}")
    for name, panel in tasks.panels.items():
        split = tasks.split(name)
        if split not in known:
            how = f"{split!r}" if panel.split else f"null, which is {split!r}"
            raise ConfigError(
                f"tasks.panels.{name}.split = {how}: env has no such split: {unknown(split, known)}. "
                f"tasks.panels.{name}=null removes the panel"
            )


def make(made: TaskFamily, split: str, count: int, seed: int) -> list[Task]:
    """`count` tasks of a split. Raises `ConfigError` when the family cannot make as many, or JSON cannot hold one."""
    try:
        tasks = made.make(split, count, seed)
    except ValueError as error:
        raise ConfigError(f"env: {count} tasks of split {split} cannot be made: {error}") from None
    for number, task in enumerate(tasks):
        if reason := unstorable(task):
            raise ConfigError(
                f"env: task {number} of split {split} ({task.instruction!r}), as `make` made it, would be another one "
                f"when it is read from its file: {reason}"
            )
    return tasks


def practice_tasks(config: Config, root: Path, made: TaskFamily) -> list[Task]:
    """Tasks to train the base models on. No arm trains on them, and no panel has them.

    They are of the split `practice` where the environment has one, otherwise of the training split.
    """
    settings = config.bootstrap
    count = max(settings.policy.episodes, settings.reward.episodes, settings.adapter.episodes)
    split = PRACTICE if PRACTICE in made.splits() else TRAIN
    return further_tasks(
        config, root, made, count, derive_seed(config.seed, "bootstrap", "tasks"), split=split
    )


def further_tasks(
    config: Config,
    root: Path,
    made: TaskFamily,
    count: int,
    seed: int,
    without: Collection[Task] = (),
    split: str = TRAIN,
) -> list[Task]:
    """At most `count` tasks of a split that are not trained on, not on a panel, and not in `without`.

    Raises `ConfigError` when the environment cannot make enough tasks.
    """
    tasks = config.tasks
    splits = {TRAIN: TRAIN, **{name: tasks.split(name) for name in tasks.panels}}
    held = {name: {task.task_id for task in read_tasks(Layout(root).tasks(name))} for name in splits}
    left_out = {task.task_id for task in without}.union(*held.values())
    try:
        drawn = make(made, split, count + len(left_out), seed)
    except ConfigError:  # a dataset in files is finite: ask only for what its split can hold
        own = sum(len(ids) for name, ids in held.items() if splits[name] == split) + len(without)
        drawn = make(made, split, count + own, seed)
    return [task for task in drawn if task.task_id not in left_out][:count]
