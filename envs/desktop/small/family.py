"""The family of the small desktop's tasks: the protocols of `rlanything.core.protocols`, without a teacher."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

from envs.desktop import rewording
from envs.desktop.bridge.pool import Pool
from envs.desktop.bridge.world import Settings
from envs.desktop.play.environment import DesktopEnvironment
from envs.desktop.play.together import Together
from envs.desktop.small import box, demonstration
from envs.desktop.small.templates import Template, templates
from envs.settings import one_of, seconds, some, whole
from envs.splits import FAMILIAR, OUT_OF_DOMAIN, SPLITS
from rlanything.core.protocols import Environment
from rlanything.core.splits import TRAIN
from rlanything.core.types import Direction, InvalidProposal, Observation, Task

ENV = "desktop"
OBSERVES = ("screenshot", "tree", "both")


class DesktopFamily:
    """Tasks on a small real desktop. The arguments are what experiments/env/desktop.yaml declares.

    ood_apps: applications that training never sees; out_of_domain and reward_panel are of them.
    worlds: desktops that may run in this process. observe: screenshot, tree or both.
    start, timeout: seconds until a world says hello, and for each of its other answers.

    Raises `ValueError`, naming argument, value and what is allowed.
    """

    name = ENV

    def __init__(
        self,
        ood_apps: Sequence[str] = ("gnumeric",),
        worlds: int = 4,
        observe: str = "tree",
        start: float = 120.0,
        timeout: float = 60.0,
    ) -> None:
        apps = tuple(dict.fromkeys(template.app for template in templates().values()))
        self._far = some("ood_apps", ood_apps, apps)
        if not self._far:
            raise ValueError(f"ood_apps: at least one of {', '.join(apps)} must be kept for the panels")
        self.only_pictures = one_of("observe", observe, OBSERVES) == "screenshot"
        self.pictures = observe != "tree"
        self._times = seconds("start", start), seconds("timeout", timeout)
        self._trees = observe != "screenshot"
        self.most_open = whole("worlds", worlds, 1, 256)
        self._made: Pool | None = None
        self._together = Together(lambda: DesktopEnvironment(self._pool, task_file), self.most_open)

    @property
    def _pool(self) -> Pool:
        """The worlds of this process. Raises `MachineError` where something is not installed."""
        if self._made is None:
            settings = Settings(box.command(), *self._times, pictures=self.pictures, trees=self._trees)
            self._made = Pool(settings, self.most_open)
        return self._made

    def splits(self) -> tuple[str, ...]:
        """The distributions that `make` draws tasks from."""
        return SPLITS

    def make(self, split: str, count: int, seed: int) -> list[Task]:
        """`count` distinct tasks of a split. No row of a template is in two splits. `ValueError` where it has fewer."""
        found = list(self._all(one_of("split", split, SPLITS)))
        if count > len(found):
            raise ValueError(f"{split} has {len(found)} tasks")
        random.Random(f"{split} {seed}").shuffle(found)
        return found[:count]

    def environment(self) -> Environment:
        """An environment. Raises `MachineError` naming the packages that are missing."""
        self._pool.ready()
        return self._together.environment()

    def prepare(self, work: Sequence[tuple[Task, int]]) -> None:
        """Set tasks up at the same time, before their episodes are reset one by one."""
        self._pool.ready()
        self._together.prepare(work)

    def prefetch(self, work: Sequence[tuple[Task, str]]) -> None:
        """Make the steps of a turn at the same time, before the episodes take them one by one."""
        self._together.advance(work)

    def validate(self, task: Task) -> str:
        """Why `task` must not be tried, in one sentence, or ''."""
        payload = task.payload
        if payload.keys() != {"template", "row", "key"} or payload["template"] not in templates():
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

    def describe(self, task: Task) -> str:
        """The evaluators that an adapter may choose from, and last the task in the form of a reply."""
        template = templates()[task.payload["template"]]
        lines = [f"application: {template.app}", "templates, by the name of their evaluator:"]
        lines += [rewording.reply(*pair) for pair in template.instructions(task.payload["row"]).items()]
        return "\n".join([*lines, "the task now:", rewording.reply(task.payload["key"], task.instruction)])

    def parse(self, parent: Task, reply: str) -> Task:
        """The task that an adapter's reply asks for. Raises `InvalidProposal`."""
        known = templates()[parent.payload["template"]].instructions(parent.payload["row"])
        key, instruction = rewording.read(reply, known)
        if (key, instruction) == (parent.payload["key"], parent.instruction):
            raise InvalidProposal("the reply changes nothing")
        return Task(ENV, instruction, {**parent.payload, "key": key}, parent.metadata)

    def expert(self, task: Task) -> list[str]:
        """The commands that solve a task (`expert.play` plays them)."""
        return templates()[task.payload["template"]].expert(task.payload["row"], task.payload["key"])

    def demonstration(self, task: Task) -> list[tuple[Observation, str]]:
        """The expert as (observation, reply) pairs, made without a desktop. Stand-ins of models learn from them."""
        return demonstration.demonstration(task.instruction, self.expert(task))

    def rewrite(self, task: Task, direction: Direction, seed: int) -> str:
        """A reply that `parse` accepts and that makes the task harder or easier. Raises `InvalidProposal`."""
        template = templates()[task.payload["template"]]
        return demonstration.rewrite(template, task.payload["row"], task.payload["key"], direction)

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
