"""Tasks from OSWorld's files, by split. What decides about success is in the task, and so in its id.

`train` and `in_domain` are of the applications that are trained on, `out_of_domain` and `reward_panel` of others. As in
the paper, `in_domain` has the same tasks as `train`, as OSWorld wrote them: without templates and hints.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from envs.desktop.osworld import files
from envs.desktop.osworld.files import EXTENSION, TaskFile
from envs.splits import IN_DOMAIN, OUT_OF_DOMAIN, REWARD_PANEL
from rlanything.core.splits import TRAIN
from rlanything.core.types import Task

ENV = "osworld"


@dataclass(frozen=True)
class Sources:
    """Where the tasks are. tasks, templates: folders in `data`, for panels and for training; index: which are used.

    ood_apps, reward_apps: applications of the panels. evaluators: the digest of OSWorld's evaluators, or ''.
    """

    data: str
    tasks: str
    templates: str
    index: str
    ood_apps: tuple[str, ...]
    reward_apps: tuple[str, ...]
    evaluators: str

    @cached_property
    def root(self) -> Path:
        """The folder of the data. Raises `TaskFileError`."""
        return files.root(self.data)

    def of(self, split: str) -> list[TaskFile]:
        """The files of a split. Raises `TaskFileError`."""
        names = self.applications()
        apps = {
            TRAIN: [app for app in names if app not in (*self.ood_apps, *self.reward_apps)],
            IN_DOMAIN: [app for app in names if app not in (*self.ood_apps, *self.reward_apps)],
            OUT_OF_DOMAIN: list(self.ood_apps),
            REWARD_PANEL: list(self.reward_apps),
        }[split]
        folder = self.root / (self.templates if split == TRAIN else self.tasks)
        return files.read_all(folder, {app: names[app] for app in apps})

    def applications(self) -> dict[str, list[str]]:
        """Application -> ids of its tasks. Raises `TaskFileError`, also for a panel's application without tasks."""
        names = files.index(self.root, self.index)
        for app in (*self.ood_apps, *self.reward_apps):
            if app not in names:
                raise files.TaskFileError(
                    f"{self.root / self.index}: it has no tasks of {app}: {', '.join(names)}"
                )
        return names

    def draw(self, split: str, count: int, seed: int) -> list[Task]:
        """`count` tasks of a split. Raises `ValueError` where it has fewer."""
        found = self.of(split)
        if count > len(found):
            raise ValueError(f"{split} has {len(found)} tasks")
        random.Random(f"{split} {seed}").shuffle(found)
        return [self._task(file, split) for file in found[:count]]

    def _task(self, file: TaskFile, split: str) -> Task:
        key, instruction = file.current if split == TRAIN else ("", file.content["instruction"])
        kept = {
            name: value for name, value in file.content.items() if split == TRAIN or name not in EXTENSION
        }
        payload = {
            "app": file.app,
            "file": file.digest,
            "evaluators": self.evaluators,
            "key": key,
            "content": kept,
        }
        return Task(ENV, instruction, payload, {"split": split, "id": file.name})


def task_file(task: Task) -> dict[str, Any]:
    """What OSWorld's `reset` gets: the file with the instruction and the evaluator of this task."""
    content: Mapping[str, Any] = task.payload["content"]
    plain = {name: value for name, value in content.items() if name not in EXTENSION}
    key = task.payload["key"]
    evaluator = content["evaluator_list"][key] if key else content["evaluator"]
    return {**plain, "instruction": task.instruction, "evaluator": evaluator}


def templates(task: Task) -> dict[str, str]:
    """Evaluator name -> canonical instruction. A task without templates has one: its instruction in the file."""
    content = task.payload["content"]
    return dict(content.get("task_template") or {"": content["instruction"]})
