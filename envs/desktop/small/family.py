"""The family of the small desktop's tasks: the protocols of `rlanything.core.protocols`, without a teacher."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import Any

from envs.desktop import rewording
from envs.desktop.play.family import WorldFamily
from envs.desktop.small import box, demonstration
from envs.desktop.small.templates import Template, templates
from envs.settings import one_of, some
from envs.splits import FAMILIAR, OUT_OF_DOMAIN, SPLITS
from rlanything.core.splits import TRAIN
from rlanything.core.types import Direction, Observation, Task

ENV = "desktop"
SMALLEST = 480
"""Pixels of a side, in which the windows of the applications have room."""


class DesktopFamily(WorldFamily):
    """Tasks on a small real desktop. The arguments are what experiments/env/desktop.yaml declares.

    ood_apps: applications that training never sees; out_of_domain and reward_panel are of them.
    The rest: `WorldFamily`.

    Raises `ValueError`, naming argument, value and what is allowed.
    """

    name = ENV
    reuse = False  # an agent may change what the window manager and the X server have in memory

    def __init__(
        self,
        ood_apps: Sequence[str] = ("gnumeric",),
        worlds: int = 4,
        observe: str = "tree",
        screen: Sequence[int] = (1024, 768),
        start: float = 120.0,
        timeout: float = 60.0,
    ) -> None:
        super().__init__(observe, screen, worlds, start, timeout)
        if min(screen) < SMALLEST:
            raise ValueError(f"screen: {list(screen)!r}: a side has at least {SMALLEST} pixels")
        apps = tuple(dict.fromkeys(template.app for template in templates().values()))
        self._far = some("ood_apps", ood_apps, apps)
        if not self._far:
            raise ValueError(f"ood_apps: at least one of {', '.join(apps)} must be kept for the panels")

    def make(self, split: str, count: int, seed: int) -> list[Task]:
        """`count` distinct tasks of a split. No row of a template is in two splits. `ValueError` where it has fewer."""
        found = list(self._all(one_of("split", split, SPLITS)))
        if count > len(found):
            raise ValueError(f"{split} has {len(found)} tasks")
        random.Random(f"{split} {seed}").shuffle(found)
        return found[:count]

    def validate(self, task: Task) -> str:
        """Why `task` must not be tried, in one sentence, or ''."""
        payload = task.payload
        if (
            payload.keys() != {"template", "row", "key"}
            or not isinstance(payload["key"], str)
            or payload["template"] not in list(templates())
        ):
            return "a task has a known template, a row and the name of an evaluator"
        template = templates()[payload["template"]]
        if type(payload["row"]) is not int or not 0 <= payload["row"] < len(template.rows):
            return "the template has no such row"
        known = template.instructions(payload["row"])
        if payload["key"] not in known:
            return "the template has no such evaluator"
        canonical = known[payload["key"]]
        return (
            ""
            if task.instruction == canonical
            else next(rewording.objections(task.instruction, canonical), "")
        )

    def expert(self, task: Task) -> list[str]:
        """The commands that solve a task (`expert.play` plays them)."""
        return templates()[task.payload["template"]].expert(task.payload["row"], task.payload["key"])

    def demonstration(self, task: Task) -> list[tuple[Observation, str]]:
        """The expert as (observation, reply) pairs, made without a desktop. Stand-ins of models learn from them."""
        return demonstration.demonstration(task.instruction, self.expert(task), self._screen)

    def rewrite(self, task: Task, direction: Direction, seed: int) -> str:
        """A reply that `parse` accepts and that makes the task harder or easier. Raises `InvalidProposal`."""
        template = templates()[task.payload["template"]]
        return demonstration.rewrite(template, task.payload["row"], task.payload["key"], direction)

    def programs(self) -> Mapping[str, str]:
        """Versions of the packages that a desktop is made of: other ones may show another screen."""
        return box.versions()

    def _command(self) -> Sequence[str]:
        return box.command(self._screen)

    def _task_file(self, task: Task) -> Mapping[str, Any]:
        return task_file(task)

    def _templates(self, task: Task) -> Mapping[str, str]:
        return templates()[task.payload["template"]].instructions(task.payload["row"])

    def _app(self, task: Task) -> str:
        return templates()[task.payload["template"]].app

    def _all(self, split: str) -> list[Task]:
        """Every task of a split. A template's rows are divided: all but two for the first panel of its kind."""
        far = split not in FAMILIAR
        made = []
        for template in templates().values():
            if (template.app in self._far) is far:
                held = split not in (TRAIN, OUT_OF_DOMAIN)
                made += [
                    _task(template, row, split) for row in range(len(template.rows)) if (row < 2) is held
                ]
        return [task for tasks in made for task in tasks]


def task_file(task: Task) -> dict[str, Any]:
    """What the world gets for a task."""
    return templates()[task.payload["template"]].task_file(task.payload["row"], task.payload["key"])


def _task(template: Template, row: int, split: str) -> list[Task]:
    """The tasks of one row, one for each evaluator."""
    return [
        Task(
            ENV,
            said,
            {"template": template.name, "row": row, "key": key},
            {"split": split, "app": template.app},
        )
        for key, said in template.instructions(row).items()
    ]
