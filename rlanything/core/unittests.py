"""Unit tests that a reward model writes, run on the programs of its task: the values, and what an environment does.

In the coding setting (paper, appendix C) the reward model does not vote on steps: it writes tests, and a sandbox finds
out which programs pass them. The rewards that follow are `coding_signals`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from rlanything.core.types import Json, Task

Row = tuple[bool | None, ...]
"""What one program did on each test: passed, failed, or None where the sandbox failed."""


@dataclass(frozen=True, slots=True)
class Tables:
    """What the programs of one task did: `dataset[i][k]` on the task's own test k, `generated[i][k]` on a written one.

    `tests` holds the written tests as they were read, '' for a reply that held none.
    """

    tests: tuple[str, ...]
    dataset: tuple[Row, ...]
    generated: tuple[Row, ...]

    @property
    def readable(self) -> list[bool]:
        """For each reply, whether it held a test."""
        return [bool(test) for test in self.tests]

    def to_json(self) -> dict[str, Json]:
        """As a JSON object."""
        return {
            "tests": list(self.tests),
            "dataset": [list(row) for row in self.dataset],
            "generated": [list(row) for row in self.generated],
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Json]) -> Tables:
        """Inverse of `to_json`. Raises `KeyError` or `TypeError` for a record that is none."""
        return cls(
            tuple(data["tests"]),
            tuple(tuple(row) for row in data["dataset"]),
            tuple(tuple(row) for row in data["generated"]),
        )


Examination = tuple[Task, Sequence[str], Sequence[str]]
"""What to find out about one task: the answers of the policy, and the replies of the test writer."""


@runtime_checkable
class Examiner(Protocol):
    """What a family offers whose reward model writes unit tests."""

    def examine(self, work: Sequence[Examination]) -> list[Tables]:
        """Read the tests in the replies and run every program on them and on the task's own tests, all at once."""
        ...

    def criticism(self, task: Task, tables: Tables) -> str:
        """What an adapter reads about the rollouts: tests with the share of programs that pass each."""
        ...

    def program(self, task: Task, answer: str) -> str:
        """The program that an answer holds, as it is run: what two answers must differ in to be two programs."""
        ...

    def proven(self, task: Task) -> bool:
        """Whether a solution is known that passes the task's tests, so that they cannot contradict each other."""
        ...


@runtime_checkable
class UnitTestTeacher(Protocol):
    """What an embedded family additionally offers to train the first test writer."""

    def demonstrate_test(self, task: Task, seed: int, noise: float) -> str:
        """A reply with a test; with probability `noise` a wrong one."""
        ...

    def demonstrate_criticism(self, task: Task, seed: int) -> str:
        """What `criticism` could say about the task, from made-up programs."""
        ...


@runtime_checkable
class Prefetches(Protocol):
    """A family that answers many actions at once faster than one by one."""

    def prefetch(self, work: Sequence[tuple[Task, str]]) -> None:
        """Every action of a turn, before the environments are asked one by one; the answers are kept for them."""
        ...
