"""What the loop asks of an environment, of its tasks, of a teacher, and of an engine that samples text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from rlanything.core.types import Completion, Direction, Observation, Request, StepResult, Task


@runtime_checkable
class Environment(Protocol):
    """An environment runs one episode at a time. It may raise: rollouts turn exceptions into `Status.ENV_ERROR`."""

    def reset(self, task: Task, seed: int) -> Observation:
        """Start the episode of `task`; the text contains the instruction."""
        ...

    def step(self, action: str) -> StepResult:
        """Act. The answer to an inadmissible action is text, never an exception."""
        ...

    def close(self) -> None:
        """Free the resources of the episode."""
        ...


class TaskFamily(Protocol):
    """What the loop needs of a kind of task. Each folder of `envs/` has one such class."""

    name: str

    def splits(self) -> Sequence[str]:
        """The names of the distributions that `make` draws tasks from."""
        ...

    def make(self, split: str, count: int, seed: int) -> list[Task]:
        """`count` distinct valid tasks of a split (one of `splits`); the same for the same arguments.

        Raises `ValueError` where there are not as many.
        """
        ...

    def environment(self) -> Environment:
        """A fresh environment for tasks of this family."""
        ...

    def validate(self, task: Task) -> str:
        """Why `task` must not be tried (unparsable, unsolvable, already solved); '' when it may be tried."""
        ...

    def describe(self, task: Task) -> str:
        """The facts of the task's scene that an adapter needs to rewrite it."""
        ...

    def parse(self, parent: Task, reply: str) -> Task:
        """The task in an adapter's reply, which is untrusted text. Raises `InvalidProposal`."""
        ...


@runtime_checkable
class Teacher(Protocol):
    """What an embedded family also offers, to train the first small models and to measure the reward model."""

    def demonstrate(self, task: Task, seed: int, noise: float) -> list[tuple[Observation, str]]:
        """(observation, action) pairs of an expert that knows only what it has seen. noise: share of random actions."""
        ...

    def label_steps(self, task: Task, actions: Sequence[str]) -> list[bool]:
        """For each action of an episode, whether it was good, given what had been seen until then (an exact oracle)."""
        ...

    def explain(self, task: Task, actions: Sequence[str]) -> list[str]:
        """A short reason, of a few words, for each step's label."""
        ...

    def rewrite(self, task: Task, direction: Direction, seed: int) -> str:
        """A reply that `parse` accepts and that makes the task harder or easier. It teaches an adapter.

        Raises `InvalidProposal` where the task cannot be rewritten in that direction.
        """
        ...


@runtime_checkable
class GameFiles(Protocol):
    """A family whose tasks are folders of files that other tools read."""

    @staticmethod
    def write_game(task: Task, root: Path) -> Path:
        """Write a task below `root`; returns its folder."""
        ...

    @staticmethod
    def read_game(folder: Path) -> Task:
        """The task in a folder. Raises `ValueError` for one that is none."""
        ...


@runtime_checkable
class GeneratedData(TaskFamily, Protocol):
    """A family whose generated tasks can stand for a downloaded set, in a rehearsal without one."""

    @classmethod
    def easiest(cls, section: Mapping[str, Any]) -> GeneratedData:
        """The family with the easiest tasks that it generates; how tasks are edited is as `section` (of `env`) says."""
        ...

    def stand_ins(self, counts: Mapping[str, int], seed: int) -> dict[str, list[Task]]:
        """Generated tasks for splits of the downloaded set: split -> so many, no task in two of them.

        Raises `ValueError` for a split that the set does not have.
        """
        ...

    def write_data(self, folder: Path, tasks: Mapping[str, Sequence[Task]]) -> None:
        """Write the tasks of each split below `folder`, as the downloaded set has them."""
        ...

    def rewriting(self, task: Task, direction: Direction, seed: int) -> tuple[str, str]:
        """(facts, reply): how a task of the downloaded set is described to an adapter, and a rewrite that can be read.

        Raises `InvalidProposal` where the task cannot be rewritten in that direction.
        """
        ...


class Engine(Protocol):
    """Text generation, for policy, reward model and adapter."""

    def generate(self, requests: Sequence[Request]) -> list[Completion]:
        """Completions in the order of the requests."""
        ...

    def release(self, sessions: Sequence[str]) -> None:
        """Free the caches of these sessions. Unknown names are ignored."""
        ...

    def sync(self) -> None:
        """Use the current weights. Drops every cache."""
        ...

    def close(self) -> None:
        """Free caches and workers."""
        ...
