"""Unit tests that a reward model writes, and the protocols of environments that run them.

In the coding setting (paper, appendix C) the reward model writes tests instead of votes, and a sandbox runs the
policy's programs on them. The rewards are computed in `coding_signals`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from typing_extensions import TypedDict

from rlanything.core.records.forms import Form, Text, require_equal
from rlanything.core.types import Json, Task

Row = tuple[bool | None, ...]
"""Result of one program on each test: True (passed), False (failed), None (the sandbox failed)."""


class TablesForm(TypedDict):
    """Stored tables."""

    tests: list[Text]
    dataset: list[list[bool | None]]
    generated: list[list[bool | None]]


_TABLES = Form(TablesForm)


@dataclass(frozen=True, slots=True)
class UnitTest:
    """One test that the reward model wrote. text: the test parsed from the reply, '' where the reply holds none."""

    text: str
    response_ids: tuple[int, ...]
    logprobs: tuple[float, ...]

    @property
    def readable(self) -> bool:
        """Whether the reply holds a test."""
        return bool(self.text)


@dataclass(frozen=True, slots=True)
class Tables:
    """Results of the programs of one task on its tests.

    dataset[i][k]: result of program i on the task's own test k. generated[i][k]: its result on generated test k.
    tests: the generated tests, parsed from the replies; '' for a reply without a test.
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
        """Inverse of `to_json`. Raises `ValueError` for a record of another form."""
        _TABLES.check(data)
        tests = tuple(data["tests"])
        dataset, generated = (tuple(map(tuple, data[name])) for name in ("dataset", "generated"))
        require_equal("rows of generated", len(generated), "programs", len(dataset))
        for row in generated:
            require_equal("results", len(row), "generated tests", len(tests))
        require_table(dataset)
        return cls(tests, dataset, generated)


def require_table(dataset: Sequence[Row]) -> None:
    """Raise `ValueError` unless every program has a result on each of the task's own tests, of which there are some."""
    for row in dataset:
        if not row:
            raise ValueError("a program without a result")
        require_equal("results", len(row), "tests of the task", len(dataset[0]))


Examination = tuple[Task, Sequence[str], Sequence[str]]
"""One task to examine: the task, the policy's answers, and the reward model's replies."""


@runtime_checkable
class Examiner(Protocol):
    """What a task family offers when its reward model writes unit tests."""

    def examine(self, work: Sequence[Examination]) -> list[Tables]:
        """Parse the tests in the replies. Run every program on them and on the task's own tests, all tasks at once."""
        ...

    def criticism(self, task: Task, tables: Tables) -> str:
        """What the adapter reads about the rollouts: the tests, and for each the share of programs that pass it."""
        ...

    def failed_tests(self, task: Task, tables: Tables) -> list[dict[int, str]]:
        """For each program: the tests that it fails, of those that a critic reads, as number -> text."""
        ...

    def program(self, task: Task, answer: str) -> str:
        """The program in an answer, as it is run."""
        ...

    def proven(self, task: Task) -> bool:
        """Whether a known solution passes the task's tests. If so, the tests do not contradict each other."""
        ...


@dataclass(frozen=True, slots=True)
class Outputs:
    """Which programs of one task give equal outputs on the inputs of its generated tests. The outputs are not stored.

    inputs[k]: the index of the first test with the same input as test k; None: the reply held no test.
    written[i][k]: the index of the first program with the same output as program i on the input of test k; None:
    program i gave no output, because it failed or exceeded a limit, or because the sandbox failed.
    """

    inputs: tuple[int | None, ...]
    written: tuple[tuple[int | None, ...], ...]


@runtime_checkable
class ComparesOutputs(Protocol):
    """A family that can compare the outputs of programs, whatever output a test expects."""

    def outputs(self, task: Task, answers: Sequence[str], tests: Sequence[str]) -> Outputs:
        """Run every program on the input of every test (in the form of `Tables.tests`), and compare their outputs."""
        ...


@runtime_checkable
class UnitTestTeacher(Protocol):
    """What a family also offers for embedded models: data to train the base reward model that writes tests."""

    def demonstrate_test(self, task: Task, seed: int, noise: float) -> str:
        """A reply with a test; with probability `noise` a wrong one.

        Raises `ValueError` for a task, such as a rewritten one, of which it knows no right test. `UnicodeError`,
        `JSONDecodeError` and `UserError` are failures, though they are of that kind.
        """
        ...

    def demonstrate_criticism(self, task: Task, seed: int) -> str:
        """A text as `criticism` could give for the task, made from invented results."""
        ...


@runtime_checkable
class TestingTeacher(Examiner, UnitTestTeacher, Protocol):
    """A family that runs programs and can write right and wrong tests for its own problems."""


@runtime_checkable
class Prefetches(Protocol):
    """A family that can process the actions of many episodes at once, faster than one by one."""

    def prefetch(self, work: Sequence[tuple[Task, str]]) -> None:
        """Process every action of a turn ahead of time. `Environment.step` then uses the results."""
        ...
