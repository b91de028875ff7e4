"""The family of OSWorld's tasks. Implements the protocols of `rlanything.core.protocols`, without a teacher."""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from envs.desktop import rewording
from envs.desktop.bridge.world import World
from envs.desktop.osworld.files import flaw
from envs.desktop.osworld.tasks import ENV, EXTENSION, Sources, task_file, templates
from envs.desktop.play.environment import DesktopEnvironment
from envs.desktop.play.family import WorldFamily
from envs.settings import names, one_of, text
from envs.splits import SPLITS
from rlanything.core.errors import EnvironmentFailure, MachineError
from rlanything.core.protocols import Environment, Verdict
from rlanything.core.types import Task


class OSWorldFamily(WorldFamily):
    """Tasks of OSWorld in its own virtual machines. The arguments are what experiments/env/osworld.yaml declares.

    data: the folder `evaluation_examples`; tasks, templates: folders in it for panels and for training; index: the file
        that says which tasks are used. ood_apps, reward_apps: applications of out_of_domain and of reward_panel.
    command: what starts a world, and speaks the protocol (docs/osworld.md). The rest: `WorldFamily`.
    evaluators: digest of the evaluators that the world must have; None: any.

    Raises `ValueError`, naming argument, value and what is allowed.
    """

    name = ENV

    def __init__(
        self,
        data: str,
        command: Sequence[str],
        tasks: str = "examples",
        templates: str = "new_examples",
        index: str = "test_nogdrive.json",
        ood_apps: Sequence[str] = ("multi_apps", "chrome"),
        reward_apps: Sequence[str] = ("multi_apps",),
        worlds: int = 96,
        observe: str = "screenshot",
        screen: Sequence[int] = (1920, 1080),
        start: float = 900.0,
        timeout: float = 300.0,
        evaluators: str | None = None,
    ) -> None:
        super().__init__(observe, screen, worlds, start, timeout)
        places = text("data", data), text("tasks", tasks), text("templates", templates), text("index", index)
        apps = names("ood_apps", ood_apps), names("reward_apps", reward_apps)
        known = "" if evaluators is None else text("evaluators", evaluators)
        self._sources = Sources(*places, *apps, evaluators=known)
        self._words = names("command", command)

    def check_data(self, splits: Collection[str]) -> None:
        """Raise `TaskFileError` unless the folder is there, with an index that has the panels' applications.

        The folder has all splits.
        """
        self._sources.applications()

    def make(self, split: str, count: int, seed: int) -> list[Task]:
        """`count` distinct tasks of a split. Raises `TaskFileError`, and `ValueError` where it has fewer."""
        return self._sources.draw(one_of("split", split, SPLITS), count, seed)

    def validate(self, task: Task) -> str:
        """Why `task` must not be tried, in one sentence, or ''."""
        payload = task.payload
        if payload.keys() != {"app", "file", "evaluators", "key", "content"} or not isinstance(
            payload["content"], dict
        ):
            return "a task has an application, a file, evaluators, a key and the content of its file"
        if reason := flaw(payload["content"]):
            return f"the content of its file: {reason}"
        if payload["evaluators"] != self._sources.evaluators:
            return "the task is judged by other evaluators than env.evaluators"
        known = templates(task)
        if not isinstance(payload["key"], str):
            return "its evaluator has no name"
        if payload["key"] not in known and (payload["key"] or EXTENSION[0] in payload["content"]):
            return "its evaluator is none of its file"
        canonical = known.get(payload["key"], task.instruction)
        content = payload["content"]
        # The file's own words are those of people: the rules of rewordings are for an adapter's.
        own = content["instruction"], content.get(EXTENSION[2], {}).get(payload["key"])
        if task.instruction in (canonical, *own):
            return ""
        return next(rewording.objections(task.instruction, canonical), "")

    def left_open(self) -> Sequence[str]:
        """That any evaluators will do, where `evaluators` is None."""
        if self._sources.evaluators:
            return []
        return [
            "evaluators is null: tasks do not say which of OSWorld's evaluators judge them, so two runs with different "
            "ones have the same record. Set it to the digest that osworld_bridge.py --describe prints (docs/osworld.md)"
        ]

    def verdicts(self, environments: Sequence[Environment]) -> Sequence[Verdict]:
        """OSWorld's verdicts on episodes at their limit: OSWorld's own runs evaluate them, too."""
        return self._together.verdicts([one for one in environments if isinstance(one, DesktopEnvironment)])

    def programs(self) -> Mapping[str, str]:
        """What a world says of itself: the digest of its evaluators, OSWorld's commit, the provider."""
        with contextlib.suppress(EnvironmentFailure, MachineError):  # the first episode says what is wrong
            world = self._pool.take()
            try:
                return world.hello.facts
            finally:
                world.broken = True  # a whole virtual machine does not wait for an episode: the pool ends it
                self._pool.give_back(world)
        return {}

    def _command(self) -> Sequence[str]:
        return self._words

    def _task_file(self, task: Task) -> Mapping[str, Any]:
        return task_file(task)

    def _templates(self, task: Task) -> Mapping[str, str]:
        return templates(task)

    def _app(self, task: Task) -> str:
        return str(task.payload["app"])

    def _check(self, world: World) -> None:
        super()._check(world)
        found, wanted = world.hello.facts.get("evaluators", ""), self._sources.evaluators
        if wanted and found != wanted:
            raise MachineError(
                f"the world's evaluators are {found or 'unnamed'}, env.evaluators says {wanted}"
            )
