"""The protocols of environments, task families, teachers, and engines that sample text."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from rlanything.core.types import Completion, Direction, Observation, Request, StepResult, Task


@runtime_checkable
class Environment(Protocol):
    """An environment runs one episode at a time. Its methods may raise: a rollout then ends with `Status.ENV_ERROR`."""

    def reset(self, task: Task, seed: int) -> Observation:
        """Start an episode of `task`. The text of the observation contains the instruction."""
        ...

    def step(self, action: str) -> StepResult:
        """Perform an action. For an inadmissible action the observation says so; no exception is raised."""
        ...

    def close(self) -> None:
        """Free the resources of the episode."""
        ...


class TaskFamily(Protocol):
    """A family of tasks, as the loop uses it. Each folder of `envs/` has one such class."""

    name: str

    def splits(self) -> Sequence[str]:
        """The names of the distributions that `make` draws tasks from."""
        ...

    def make(self, split: str, count: int, seed: int) -> list[Task]:
        """`count` distinct valid tasks of a split (one of `splits`). The same arguments give the same tasks.

        Raises `ValueError` when the split has fewer tasks.
        """
        ...

    def environment(self) -> Environment:
        """A fresh environment for tasks of this family."""
        ...

    def validate(self, task: Task) -> str:
        """Why `task` must not be rolled out (unparsable, unsolvable, already solved); '' when it may be."""
        ...

    def describe(self, task: Task) -> str:
        """The facts about the task that an adapter needs to rewrite it."""
        ...

    def parse(self, parent: Task, reply: str) -> Task:
        """The task in an adapter's reply, which is untrusted text. Raises `InvalidProposal`."""
        ...


@runtime_checkable
class Teacher(Protocol):
    """What a family also offers for embedded models: data to train the base models, and exact labels of steps."""

    def demonstrate(self, task: Task, seed: int, noise: float) -> list[tuple[Observation, str]]:
        """(observation, action) pairs of an expert that knows only its observations. noise: share of random actions."""
        ...

    def label_steps(self, task: Task, actions: Sequence[str]) -> list[bool]:
        """For each action of an episode: was it good, given the observations before it? The answers are exact."""
        ...

    def explain(self, task: Task, actions: Sequence[str]) -> list[str]:
        """A reason of a few words for the label of each step."""
        ...

    def rewrite(self, task: Task, direction: Direction, seed: int) -> str:
        """A reply that `parse` accepts and that makes the task harder or easier. Adapters are trained on it.

        Raises `InvalidProposal` where the task cannot be rewritten in that direction.
        """
        ...


@runtime_checkable
class MayNotTeach(Protocol):
    """A family whose settings decide whether it has a teacher's data for embedded models."""

    def why_no_lessons(self) -> str:
        """Why nothing can be taught with the tasks of these settings, in one sentence, or ''."""
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
        """The task in a folder. Raises `ValueError` when the folder does not hold a task."""
        ...


@runtime_checkable
class GeneratedData(TaskFamily, Protocol):
    """A family whose generated tasks can replace a downloaded dataset in a rehearsal."""

    @classmethod
    def easiest(cls, section: Mapping[str, Any]) -> GeneratedData:
        """The family with the easiest tasks that it can generate.

        `section`: the section `env`, which says how tasks are edited.
        """
        ...

    def stand_ins(self, counts: Mapping[str, int], seed: int) -> dict[str, list[Task]]:
        """Generated tasks that replace the splits of the downloaded dataset. No task is in two splits.

        counts: split -> number of tasks. Raises `ValueError` for a split that the dataset does not have.
        """
        ...

    def write_data(self, folder: Path, tasks: Mapping[str, Sequence[Task]]) -> None:
        """Write the tasks of each split below `folder`, in the format of the downloaded dataset."""
        ...

    def rewriting(self, task: Task, direction: Direction, seed: int) -> tuple[str, str]:
        """(facts, reply): what an adapter is told about a task of the downloaded dataset, and a valid reply to it.

        Raises `InvalidProposal` where the task cannot be rewritten in that direction.
        """
        ...


@runtime_checkable
class RunsPrograms(Protocol):
    """A family whose results depend on programs that are no Python packages."""

    def programs(self) -> Mapping[str, str]:
        """Name of a program, or of a fact about it -> its version. Empty where they cannot be asked here."""
        ...


class Verdict(Protocol):
    """A verdict that may have been an error."""

    def result(self) -> bool:
        """Whether the episode is a success. Raises what went wrong while it was judged."""
        ...


@runtime_checkable
class JudgesAtLimit(Protocol):
    """A family whose benchmark judges an episode that has reached its limit of steps, as if it had ended there."""

    def verdicts(self, environments: Sequence[Environment]) -> Sequence[Verdict]:
        """The verdicts on the episodes that these environments play now, in order, made at the same time."""
        ...


@runtime_checkable
class Prepares(Protocol):
    """A family that can start many episodes at the same time, faster than one by one."""

    def prepare(self, work: Sequence[tuple[Task, int]]) -> None:
        """Start episodes of these tasks, with their seeds. `Environment.reset` then uses the results, in this order."""
        ...


@runtime_checkable
class Recognises(Protocol):
    """A family in which tasks with different ids can be the same exercise, as one game with two sentences."""

    def exercise(self, task: Task) -> str:
        """What there is to do in the task, whatever its words: equal for tasks that are the same exercise."""
        ...


@runtime_checkable
class Stored(Protocol):
    """A family whose tasks can be files of the user."""

    def check_data(self, splits: Collection[str]) -> None:
        """Raise `ValueError` naming what is missing, where the tasks of these splits are files."""
        ...


@runtime_checkable
class OnlyChecks(Protocol):
    """A family from outside of the project that checks of a configuration may construct. Its class says so."""

    constructor_only_checks: bool
    """True: the constructor checks its arguments and starts nothing."""


@runtime_checkable
class LeavesOpen(Protocol):
    """A family whose settings can leave open something that results depend on."""

    def left_open(self) -> Sequence[str]:
        """What these settings leave open, a text each; `rlanything config check` warns of it."""
        ...


@runtime_checkable
class Limited(Protocol):
    """A family whose environments hold something that there is not enough of, as virtual machines."""

    most_open: int
    """Episodes that may be open at a time. More are rolled out one part after the other."""


@runtime_checkable
class Pictured(Protocol):
    """A family that says whether its observations have pictures."""

    pictures: bool
    """Whether they have any."""
    only_pictures: bool
    """Whether agents must see them: the text alone does not say what there is to act on."""


class Engine(Protocol):
    """Text generation, for policy, reward model and adapter. Whoever opens an engine closes it."""

    def generate(self, requests: Sequence[Request]) -> list[Completion]:
        """Completions in the order of the requests. Each holds the version of the weights that sampled it."""
        ...

    def release(self, sessions: Sequence[str]) -> None:
        """Free the caches of these sessions. Unknown sessions are ignored."""
        ...

    def sync(self, version: int) -> None:
        """Use the current weights, and call them `version`. Drops every cache, also when the name is the same again.

        The weights that an engine is opened with have version 0.
        """
        ...

    def close(self) -> None:
        """Free caches and workers. Nothing is asked of a closed engine, but it may be closed again."""
        ...


@runtime_checkable
class LateStart(Protocol):
    """An engine that takes weights over when it is first asked, and not in `sync`. Until then it reads the module."""

    def ensure_started(self) -> None:
        """Take over the weights of the last `sync` now, unless it has them. Afterwards `generate` reads no module."""
        ...


@runtime_checkable
class Renames(Protocol):
    """An engine with a copy of the weights, which stays where nothing of them is trained."""

    def rename(self, version: int) -> None:
        """Call the weights `version`. They are those of the last `sync`; caches stay."""
        ...
