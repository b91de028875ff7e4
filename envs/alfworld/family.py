"""The ALFWorld family: tasks, environments and the teacher, behind the protocols of `rlanything.core.types`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from envs.alfworld.expert import demonstrate
from envs.alfworld.facts import TASK_TYPES
from envs.alfworld.fast import FastEnvironment
from envs.alfworld.files import data_root, load_tasks
from envs.alfworld.game import Game
from envs.alfworld.oracle import Oracle, Verdict
from envs.alfworld.proposal import describe_game
from envs.alfworld.rebuild import parse_proposal
from envs.alfworld.rewrite import rewrite_task
from envs.alfworld.sampling import ENV, Mixture, draw_tasks
from envs.alfworld.settings import LEVELS, int_range, one_of, seconds, weights
from envs.alfworld.textworld_engine import TextworldEnvironment, require_textworld
from envs.alfworld.validate import why_invalid
from envs.alfworld.world import World, compile_world
from rlanything.core.ids import content_id
from rlanything.core.types import Direction, Environment, Observation, Task

SPLITS = ("train", "in_domain", "out_of_domain", "reward_panel")


class AlfworldFamily:
    """Household text games. The arguments are what experiments/env/alfworld.yaml declares.

    engine: `fast` (pure Python, the same text and commands) or `textworld` (the real engine, extra `alfworld`).
    data: folder of the downloaded set (`$ALFWORLD_DATA` is expanded), or None for generated games.
    on_bad_file: what to do with games of that set that cannot be played: `refuse` to start, or `skip` them.
    task_types, levels: names, or names with shares, of what the generated tasks are mixed from; with `data`, the
        names in task_types select games.
    receptacles, distractors: [least, most] of a generated room in train and in_domain.
    ood_levels, ood_receptacles, ood_distractors: the same for out_of_domain and reward_panel, whose floor plans
        never occur in training.
    timeout: seconds that the real engine may take for one answer.

    Raises `ValueError`, naming argument, value and what is allowed.
    """

    name = ENV

    def __init__(
        self,
        engine: str = "fast",
        data: str | None = None,
        on_bad_file: str = "refuse",
        task_types: Sequence[str] | Mapping[str, float] = tuple(TASK_TYPES),
        levels: Sequence[str] | Mapping[str, float] = tuple(LEVELS),
        receptacles: Sequence[int] = (6, 10),
        distractors: Sequence[int] = (4, 8),
        ood_levels: Sequence[str] | Mapping[str, float] = ("medium", "hard"),
        ood_receptacles: Sequence[int] = (13, 17),
        ood_distractors: Sequence[int] = (6, 10),
        timeout: float = 60.0,
    ) -> None:
        self.engine = one_of("engine", engine, ("fast", "textworld"))
        self.timeout = seconds("timeout", timeout)
        self._root = None if data is None else data_root(data)
        self._on_bad_file = one_of("on_bad_file", on_bad_file, ("refuse", "skip"))
        if self.engine == "textworld":
            require_textworld()
        types = weights("task_types", task_types, tuple(TASK_TYPES))
        self._near = Mixture(
            "train",
            int_range("receptacles", receptacles, 4, 50),
            int_range("distractors", distractors, 0, 60),
            types,
            weights("levels", levels, tuple(LEVELS)),
        )
        self._far = Mixture(
            "test",
            int_range("ood_receptacles", ood_receptacles, 4, 50),
            int_range("ood_distractors", ood_distractors, 0, 60),
            types,
            weights("ood_levels", ood_levels, tuple(LEVELS)),
        )

    def make(self, split: str, count: int, seed: int) -> list[Task]:
        """`count` distinct valid tasks of a split; the same for the same arguments."""
        one_of("split", split, SPLITS)
        if self._root is not None:
            types = list(self._near.task_types)
            return load_tasks(self._root, split, count, seed, types, self._on_bad_file)[0]
        return draw_tasks(split, count, seed, self._near if split in ("train", "in_domain") else self._far)

    def environment(self) -> Environment:
        """A fresh environment with the engine that was asked for."""
        return FastEnvironment() if self.engine == "fast" else TextworldEnvironment(self.timeout)

    def validate(self, task: Task) -> str:
        """Why `task` must not be tried, in one sentence, or ''."""
        return why_invalid(task)

    def describe(self, task: Task) -> str:
        """Objects, furniture, possible task types, and last the present task in the form of a reply; ~60 words."""
        return describe_game(Game.from_payload(task.payload))

    def parse(self, parent: Task, reply: str) -> Task:
        """The task that an adapter's reply asks for, in the parent's room. Raises `InvalidProposal`."""
        return parse_proposal(parent, reply)

    def rewrite(self, task: Task, direction: Direction, seed: int) -> str:
        """A reply that `parse` accepts and that makes the task harder or easier."""
        return rewrite_task(task, direction, seed)

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
