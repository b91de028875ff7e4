"""The vocabulary of the sandbox: a job (a program and its tests) goes in, a `JobResult` comes out.

All are immutable values. Expected outputs are compared outside of the box and never enter it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from enum import Enum, StrEnum
from typing import Any

from rlanything.core.errors import EnvironmentFailure

MIB = 1 << 20
MOST_WORKERS = 256
"""Most boxes of one process at a time. Each has its own user id."""


class SandboxError(EnvironmentFailure):
    """A back end cannot start or cannot go on; the message says why and what would help."""


class Status(StrEnum):
    """How a test ended. Only `infrastructure` says nothing about the program."""

    OK = "ok"
    """Exit code 0 and, where an output was expected, that output."""
    WRONG = "wrong"
    """Exit code 0 and another output."""
    ERROR = "error"
    """An uncaught exception, an exit code other than 0, or a signal."""
    SYNTAX = "syntax"
    """The program does not compile."""
    TIMEOUT = "timeout"
    """More CPU time than `cpu_s`, or more wall time than `wall_s` without the time it waited for a CPU."""
    MEMORY = "memory"
    """An allocation failed, or its processes together held more than `memory_mb`."""
    OUTPUT_LIMIT = "output_limit"
    """More than `output_kb` in one of its outputs, or more than `files` files."""
    INFRASTRUCTURE = "infrastructure"
    """The box failed, also when tried again. Never counts as a wrong answer."""


class Unjudged(Enum):
    """The expected output of a test that is run only for its output."""

    UNJUDGED = "unjudged"


UNJUDGED = Unjudged.UNJUDGED


@dataclass(frozen=True)
class Stdio:
    """A test of a whole program: standard input, and the expected standard output."""

    stdin: str
    expected: str | Unjudged = UNJUDGED


@dataclass(frozen=True)
class Call:
    """A test of a function: JSON arguments in, a JSON result out.

    `function` is a function of the program or a method of its class `Solution`, which takes no arguments.
    """

    function: str
    arguments: Sequence[Any]
    expected: Any = UNJUDGED


Test = Stdio | Call


@dataclass(frozen=True)
class Limits:
    """Limits of a test. CPU time decides; wall time only ends programs that sleep."""

    cpu_s: float = 2.0
    """CPU seconds of all its processes together, which do not depend on the load of the machine."""
    wall_s: float = 10.0
    """Wall time without the time that it waited for a CPU."""
    memory_mb: int = 512
    """Address space of a process, and resident memory of all its processes together."""
    processes: int = 16
    """Processes and threads at a time."""
    output_kb: int = 1024
    """Largest standard output, standard error and result, each."""
    file_mb: int = 16
    """Largest file."""
    disk_mb: int = 64
    """All files together."""
    files: int = 2000
    """Files and folders at a time."""
    open_files: int = 64
    """File descriptors of a process."""

    def __post_init__(self) -> None:
        for key in fields(self):
            value = getattr(self, key.name)
            number = int | float if key.name in ("cpu_s", "wall_s") else int
            if isinstance(value, bool) or not isinstance(value, number) or not 0 < value < math.inf:
                raise ValueError(f"limits.{key.name}: {value!r} must be a number above 0")
        least = {"memory_mb": 64, "processes": 1, "open_files": 16}
        for name, low in least.items():
            if getattr(self, name) < low:
                raise ValueError(f"limits.{name}: {getattr(self, name)} must be at least {low}")
        if self.wall_s < self.cpu_s:
            raise ValueError(f"limits.wall_s: {self.wall_s} must be at least limits.cpu_s = {self.cpu_s}")


@dataclass(frozen=True)
class Job:
    """A program and its tests. Each test is a new process, which compiles the program and runs it."""

    program: str
    tests: Sequence[Test]
    limits: Limits | None = None
    """None: the sandbox's. `memory_mb`, `processes` and `disk_mb` must not exceed the sandbox's."""
    compare: Callable[[Any, Any], bool] | None = None
    """(given, expected) -> equal, called outside of the box; None: `same_text` for `Stdio`, `same_value` for `Call`."""
    stop_at_failure: bool = False
    """Skip the tests after the first that is not ok."""
    keep_output: bool = True
    """Keep in each outcome what the program wrote and returned."""
    share_runs: bool = False
    """Run neighbouring tests with the same input once; the times count for the first of them."""

    def __post_init__(self) -> None:
        if not self.tests:
            raise ValueError("tests: a job needs at least one test")


@dataclass(frozen=True)
class Outcome:
    """The result of one test."""

    status: Status
    output: str = ""
    """Standard output, also of a `Call`."""
    result: Any = None
    """What a `Call` returned, as JSON."""
    error: str = ""
    """The end of standard error, or the reason of the status."""
    cpu_s: float = 0.0
    wall_s: float = 0.0

    def bare(self) -> Outcome:
        """The outcome without output, result and, unless the box failed, error."""
        error = self.error if self.status is Status.INFRASTRUCTURE else ""
        return replace(self, output="", result=None, error=error)


@dataclass(frozen=True)
class JobResult:
    """The outcome of each test, in order (fewer after `stop_at_failure`)."""

    outcomes: tuple[Outcome, ...]

    @property
    def status(self) -> Status:
        """`infrastructure` if any test has it, else the first that is not ok, else ok."""
        found = [outcome.status for outcome in self.outcomes]
        if Status.INFRASTRUCTURE in found:
            return Status.INFRASTRUCTURE
        return next((status for status in found if status is not Status.OK), Status.OK)

    @property
    def passed(self) -> int:
        """How many tests are ok."""
        return sum(outcome.status is Status.OK for outcome in self.outcomes)
