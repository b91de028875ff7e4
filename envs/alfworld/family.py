"""The ALFWorld family: tasks, environments and the teacher, behind the protocols of `rlanything.core.types`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from envs.alfworld.expert import demonstrate
from envs.alfworld.facts import TASK_TYPES
from envs.alfworld.fast import FastEnvironment
from envs.alfworld.game import Game
from envs.alfworld.oracle import Oracle, Verdict
from envs.alfworld.sampling import ENV, Mixture, draw_tasks
from envs.alfworld.settings import LEVELS, int_range, one_of, seconds, weights
from envs.alfworld.validate import why_invalid
from envs.alfworld.world import World, compile_world
from rlanything.core.ids import content_id
from rlanything.core.types import Environment, Observation, Task

SPLITS = ("train", "in_domain", "out_of_domain", "reward_panel")


class AlfworldFamily:
    """Household text games. The arguments are what experiments/env/alfworld.yaml declares.

    engine: `fast` (pure Python, the same text and commands) or `textworld` (the real engine, extra `alfworld`).
    task_types, levels: names, or names with shares, of what the generated tasks are mixed from.
    receptacles, distractors: [least, most] of a generated room in train and in_domain.
    ood_receptacles, ood_distractors: the same for out_of_domain and reward_panel, in floor plans never trained on.
    timeout: seconds that the real engine may take for one answer.

    Raises `ValueError`, naming argument, value and what is allowed.
    """

    name = ENV

    def __init__(
        self,
        engine: str = "fast",
        task_types: Sequence[str] | Mapping[str, float] = tuple(TASK_TYPES),
        levels: Sequence[str] | Mapping[str, float] = tuple(LEVELS),
        receptacles: Sequence[int] = (6, 10),
        distractors: Sequence[int] = (4, 8),
        ood_receptacles: Sequence[int] = (11, 14),
        ood_distractors: Sequence[int] = (6, 10),
        timeout: float = 60.0,
    ) -> None:
        self.engine = one_of("engine", engine, ("fast", "textworld"))
        self.timeout = seconds("timeout", timeout)
        shares: dict[str, Any] = {
            "task_types": weights("task_types", task_types, tuple(TASK_TYPES)),
            "levels": weights("levels", levels, tuple(LEVELS)),
        }
        self._near = Mixture(
            "train",
            int_range("receptacles", receptacles, 4, 50),
            int_range("distractors", distractors, 0, 60),
            **shares,
        )
        self._far = Mixture(
            "test",
            int_range("ood_receptacles", ood_receptacles, 4, 50),
            int_range("ood_distractors", ood_distractors, 0, 60),
            **shares,
        )

    def make(self, split: str, count: int, seed: int) -> list[Task]:
        """`count` distinct valid tasks of a split; the same for the same arguments."""
        one_of("split", split, SPLITS)
        return draw_tasks(split, count, seed, self._near if split in ("train", "in_domain") else self._far)

    def environment(self) -> Environment:
        """A fresh environment with the engine that was asked for."""
        return FastEnvironment()

    def validate(self, task: Task) -> str:
        """Why `task` must not be tried, in one sentence, or ''."""
        return why_invalid(task)

    def demonstrate(self, task: Task, seed: int, noise: float) -> list[tuple[Observation, str]]:
        """(observation, action) pairs of a searching expert; `noise` = chance of a random admissible command."""
        return demonstrate(self._world(task), task.instruction, seed, noise)

    def label_steps(self, task: Task, actions: Sequence[str]) -> list[bool]:
        """For each action of an episode: was it good, given what had been seen?"""
        return [verdict.good for verdict in self._verdicts(task, actions)]

    def explain(self, task: Task, actions: Sequence[str]) -> list[str]:
        """The reason of each label: the value of an `oracle.Reason`."""
        return [str(verdict.reason) for verdict in self._verdicts(task, actions)]

    def _world(self, task: Task) -> World:
        return compile_world(Game.from_payload(task.payload))

    def _verdicts(self, task: Task, actions: Sequence[str]) -> list[Verdict]:
        oracle = Oracle(self._world(task))
        return [oracle.step(action.strip())[1] for action in actions]


def panel_hash(tasks: Sequence[Task]) -> str:
    """sha256 over the task ids in their order: the identity of a frozen evaluation panel."""
    return content_id([task.task_id for task in tasks])
