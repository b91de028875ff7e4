"""Unit tests that a reward model writes, and what an environment does with them.

In the coding setting (paper, appendix C) the reward model writes tests instead of votes, and a sandbox runs the
policy's programs on them. The rewards are computed in `coding_signals`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from rlanything.core.types import Json, Task

Row = tuple[bool | None, ...]
"""What one program did on each test: passed, failed, or None where the sandbox failed."""


@dataclass(frozen=True, slots=True)
class UnitTest:
    """One test that the reward model wrote. text: the test as it was read, '' where the reply holds none."""

    text: str
    response_ids: tuple[int, ...]
    logprobs: tuple[float, ...]

    @property
    def readable(self) -> bool:
        """Whether the reply holds a test."""
        return bool(self.text)


@dataclass(frozen=True, slots=True)
class Tables:
    """What the programs of one task did on its tests.

    dataset[i][k]: program i on the task's own test k. generated[i][k]: program i on written test k.
    tests: the written tests as they were read, '' for a reply without a test.
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
        """Inverse of `to_json`. Raises `KeyError` or `TypeError` for another record."""
        return cls(
            tuple(data["tests"]),
            tuple(tuple(row) for row in data["dataset"]),
            tuple(tuple(row) for row in data["generated"]),
        )


Examination = tuple[Task, Sequence[str], Sequence[str]]
"""One task to examine: the task, the policy's answers, and the reward model's replies."""


@runtime_checkable
class Examiner(Protocol):
    """What a task family offers when its reward model writes unit tests."""

    def examine(self, work: Sequence[Examination]) -> list[Tables]:
        """Read the tests in the replies and run every program on them and on the task's own tests, all at once."""
        ...

    def criticism(self, task: Task, tables: Tables) -> str:
        """What the adapter reads about the rollouts: the tests, with the share of programs that pass each."""
        ...

    def failed_tests(self, task: Task, tables: Tables) -> list[dict[int, str]]:
        """For each program, those of the task's own tests that it fails: number -> text. A critic reads them."""
        ...

    def program(self, task: Task, answer: str) -> str:
        """The program in an answer, as it is run. Two answers with the same program are one program."""
        ...

    def proven(self, task: Task) -> bool:
        """Whether a known solution passes the task's tests. Then they cannot contradict each other."""
        ...


@dataclass(frozen=True, slots=True)
class Outputs:
    """What the programs of one task wrote on the inputs of its written tests: which outputs are equal, not their text.

    inputs[k]: the first test with the input of test k; None: the reply held no test.
    written[i][k]: the first program that wrote on test k's input what program i wrote; None: it wrote no output there,
    because it failed or exceeded a limit, or because the sandbox failed.
    """

    inputs: tuple[int | None, ...]
    written: tuple[tuple[int | None, ...], ...]


@runtime_checkable
class ComparesOutputs(Protocol):
    """A family that can say which programs write the same, whatever a test expects."""

    def outputs(self, task: Task, answers: Sequence[str], tests: Sequence[str]) -> Outputs:
        """Run every program on the input of every test (as `Tables.tests` has them), and compare what they write."""
        ...


@runtime_checkable
class UnitTestTeacher(Protocol):
    """What an embedded family also offers, to train the first reward model that writes tests."""

    def demonstrate_test(self, task: Task, seed: int, noise: float) -> str:
        """A reply with a test; with probability `noise` a wrong one."""
        ...

    def demonstrate_criticism(self, task: Task, seed: int) -> str:
        """What `criticism` could say about the task, made from invented programs."""
        ...


@runtime_checkable
class TestingTeacher(Examiner, UnitTestTeacher, Protocol):
    """A family that runs programs, and can write right and wrong tests of its own problems."""


@runtime_checkable
class Prefetches(Protocol):
    """A family that can process the actions of many episodes at once, faster than one by one."""

    def prefetch(self, work: Sequence[tuple[Task, str]]) -> None:
        """Process every action of a turn. The environments then find their results ready."""
        ...
