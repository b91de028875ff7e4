"""The ALFWorld family: tasks, environments and the teacher. Implements the protocols of `rlanything.core.protocols`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from envs.alfworld import files
from envs.alfworld.engines.children import Idle
from envs.alfworld.engines.fast import FastEnvironment
from envs.alfworld.engines.textworld_engine import MOST_OPEN, TextworldEnvironment, require_textworld
from envs.alfworld.files import data_root, load_tasks
from envs.alfworld.games.alfred import TASK_TYPES
from envs.alfworld.games.game import Game
from envs.alfworld.play.validate import why_invalid
from envs.alfworld.play.world import World, compile_world
from envs.alfworld.tasks.edits import EDITS
from envs.alfworld.tasks.levels import LEVELS
from envs.alfworld.tasks.sampling import ENV, Mixture, draw_tasks
from envs.alfworld.teacher.expert import HABITS, demonstrate
from envs.alfworld.teacher.oracle import Oracle, StepLabel
from envs.settings import chances, int_range, one_of, seconds, shares, some, text
from envs.splits import DRAWN_AS, FAMILIAR, HELD_OUT, SPLITS
from rlanything.core.ids import content_id
from rlanything.core.protocols import Environment
from rlanything.core.splits import PRACTICE
from rlanything.core.types import Direction, InvalidProposal, Observation, Task


class AlfworldFamily:
    """Household text games. The arguments are what experiments/env/alfworld.yaml declares.

    engine: `fast` (pure Python, the same text and commands) or `textworld` (the real engine, extra `alfworld`). Of the
        real one `MOST_OPEN` episodes are open at a time (`Limited`).
    data: folder of the downloaded set (variables are expanded), or None for generated games.
    on_bad_file: for games of that set that cannot be played: `refuse` to start, or `skip` them.
    task_types, levels: names, or names with shares, of the generated tasks; with `data`, task_types selects games.
    held_out: task types that no arm trains on. The split `practice`, from which embedded base models learn, has all
        types, the split `held_out` these alone, every other split the rest. An adapter may not ask for them.
    receptacles, distractors: [least, most] of a generated room in train and in_domain. A goal that needs more
        receptacles gets more, and a lamp of the floor plan comes besides.
    ood_levels, ood_receptacles, ood_distractors: the same for out_of_domain and reward_panel, whose floor plans are
        not used in training.
    timeout: seconds that the real engine may take for one answer.
    habits: useless commands of the demonstrations, with the chance that the expert gives in to them: `look` after a
        `go to`, `inventory` after a `take`. A policy that imitates it has these habits too. None without noise.
    edit: what an adapter may change: `tokens`, the types of the goal's object and receptacle (the paper), or `scene`,
        also the kind of task, and copies, places and destinations of its target.

    Raises `ValueError`, naming argument, value and what is allowed.
    """

    name = ENV

    def __init__(
        self,
        engine: str = "fast",
        data: str | None = None,
        on_bad_file: str = "refuse",
        task_types: Sequence[str] | Mapping[str, float] = tuple(TASK_TYPES),
        held_out: Sequence[str] = (),
        levels: Sequence[str] | Mapping[str, float] = tuple(LEVELS),
        receptacles: Sequence[int] = (6, 10),
        distractors: Sequence[int] = (4, 8),
        ood_levels: Sequence[str] | Mapping[str, float] = ("medium", "hard"),
        ood_receptacles: Sequence[int] = (13, 17),
        ood_distractors: Sequence[int] = (6, 10),
        timeout: float = 60.0,
        habits: Mapping[str, float] | None = None,
        edit: str = "scene",
    ) -> None:
        self._habits = chances("habits", habits or {}, tuple(HABITS))
        self._edit = EDITS[one_of("edit", edit, tuple(EDITS))]
        self.engine = one_of("engine", engine, ("fast", "textworld"))
        self.timeout = seconds("timeout", timeout)
        self._root = None if data is None else data_root(text("data", data))
        self._on_bad_file = one_of("on_bad_file", on_bad_file, ("refuse", "skip"))
        if self.engine == "textworld":
            require_textworld()
            self.most_open = MOST_OPEN
            self._idle = Idle()
        types = shares("task_types", task_types, tuple(TASK_TYPES))
        self._held_out = some("held_out", held_out, tuple(types))
        self._near = Mixture(
            "train",
            int_range("receptacles", receptacles, 4, 50),
            int_range("distractors", distractors, 0, 60),
            types,
            shares("levels", levels, tuple(LEVELS)),
        )
        self._far = Mixture(
            "test",
            int_range("ood_receptacles", ood_receptacles, 4, 50),
            int_range("ood_distractors", ood_distractors, 0, 60),
            types,
            shares("ood_levels", ood_levels, tuple(LEVELS)),
        )

    write_game = staticmethod(files.write_game)
    read_game = staticmethod(files.read_game)

    def splits(self) -> tuple[str, ...]:
        """The distributions that `make` draws tasks from."""
        return (*SPLITS, *DRAWN_AS) if self._held_out else SPLITS

    def make(self, split: str, count: int, seed: int) -> list[Task]:
        """`count` distinct valid tasks of a split; the same for the same arguments."""
        one_of("split", split, self.splits())
        like, types = DRAWN_AS.get(split, split), self._types(split)
        if self._root is not None:
            return load_tasks(self._root, like, count, seed, list(types), self._on_bad_file)[0]
        mixture = self._near if like in FAMILIAR else self._far
        return draw_tasks(split, count, seed, replace(mixture, task_types=types))

    @classmethod
    def easiest(cls, section: Mapping[str, Any]) -> AlfworldFamily:
        """Games in small rooms, with the target in sight and no tool needed, and other objects to ask for."""
        easy, small, few = {"easy": 1.0}, (4, 6), (3, 5)
        return cls(
            task_types=("pick", "look"), levels=easy, receptacles=small, distractors=few,
            ood_levels=easy, ood_receptacles=small, ood_distractors=few, edit=section.get("edit", "scene"),
        )  # fmt: skip

    def stand_ins(self, counts: Mapping[str, int], seed: int) -> dict[str, list[Task]]:
        """Generated tasks of each split."""
        return {split: self.make(split, count, seed) for split, count in counts.items()}

    def write_data(self, folder: Path, tasks: Mapping[str, Sequence[Task]]) -> None:
        """Write tasks as ALFWorld's set has them, a folder for each split. Raises `GameError` for an invalid task."""
        for split, games in tasks.items():
            for task in games:
                files.write_game(task, folder / files.FOLDERS[split])

    def rewriting(self, task: Task, direction: Direction, seed: int) -> tuple[str, str]:
        """(facts, reply) of a rewrite. Raises `InvalidProposal`."""
        return self.describe(task), self.rewrite(task, direction, seed)

    def environment(self) -> Environment:
        """A new environment with the chosen engine."""
        if self.engine == "fast":
            return FastEnvironment()
        return TextworldEnvironment(self.timeout, idle=self._idle)

    def validate(self, task: Task) -> str:
        """Why `task` must not be tried, in one sentence, or ''."""
        return why_invalid(task)

    def describe(self, task: Task) -> str:
        """The facts of the scene that the adapter needs, and last the present task in the form of a reply."""
        return self._edit.describe(Game.from_payload(task.payload))

    def parse(self, parent: Task, reply: str) -> Task:
        """The task that an adapter's reply asks for, in the parent's room. Raises `InvalidProposal`."""
        task = self._edit.parse(parent, reply)
        kind = Game.from_payload(task.payload).goal.task
        if kind in self._held_out:
            raise InvalidProposal(f"task {kind!r} is held out of training (env.held_out)")
        return task

    def exercise(self, task: Task) -> str:
        """The game, whatever its sentence and whoever wrote that."""
        return content_id(replace(Game.from_payload(task.payload), annotated=False).payload)

    def rewrite(self, task: Task, direction: Direction, seed: int) -> str:
        """A reply that `parse` accepts and that makes the task harder or easier, with `scene` where its room allows it.

        Raises `InvalidProposal` for none.
        """
        reply = self._edit.rewrite(task, direction, seed)
        if self._held_out:
            self.parse(task, reply)
        return reply

    def demonstrate(self, task: Task, seed: int, noise: float) -> list[tuple[Observation, str]]:
        """(observation, action) pairs of a searching expert; `noise` = chance of a random admissible command.

        Without noise the expert is at its best, and has no habits either.
        """
        habits = self._habits if noise else {}
        return demonstrate(self._world(task), task.instruction, seed, noise, habits)

    def label_steps(self, task: Task, actions: Sequence[str]) -> list[bool]:
        """Whether each action of an episode was good, given what had been seen before it."""
        return [label.good for label in self._labels(task, actions)]

    def explain(self, task: Task, actions: Sequence[str]) -> list[str]:
        """The reason of each label: the value of an `oracle.Reason`."""
        return [str(label.reason) for label in self._labels(task, actions)]

    def _types(self, split: str) -> dict[str, float]:
        """The task types of a split, with their shares."""
        types = self._near.task_types
        if split == PRACTICE:
            return dict(types)
        return {
            name: share for name, share in types.items() if (name in self._held_out) == (split == HELD_OUT)
        }

    def _world(self, task: Task) -> World:
        return compile_world(Game.from_payload(task.payload))

    def _labels(self, task: Task, actions: Sequence[str]) -> list[StepLabel]:
        oracle = Oracle(self._world(task))
        return [oracle.step(action.strip())[1] for action in actions]
