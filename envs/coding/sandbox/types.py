"""The vocabulary of the sandbox: a job goes in (a program and its tests), a verdict comes out.

Everything is an immutable value. Expected outputs are part of a job for the harness's sake; they are compared outside
the box and never enter it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from enum import Enum, StrEnum
from typing import Any

MIB = 1 << 20
MOST_WORKERS = 256
"""Boxes of one process at a time: each has a user id of its own, out of as many."""


class SandboxError(RuntimeError):
    """A back end cannot run here, or cannot go on; the message says why and what would help."""


class Status(StrEnum):
    """What became of a test. Only `infrastructure` says nothing about the program."""

    OK = "ok"
    """It ended by itself with exit code 0 and, where an output was expected, gave that output."""
    WRONG = "wrong"
    """It ended well and gave another output."""
    ERROR = "error"
    """An exception that nobody caught, an exit code other than 0, or a signal."""
    SYNTAX = "syntax"
    """The program does not compile."""
    TIMEOUT = "timeout"
    """It used more CPU time than `cpu_s`, or was neither done nor waiting for a CPU after `wall_s`."""
    MEMORY = "memory"
    """It ended for want of memory, or its processes together held more than `memory_mb`."""
    OUTPUT_LIMIT = "output_limit"
    """It wrote more than `output_kb` to one of its outputs, or made more than `files` files."""
    INFRASTRUCTURE = "infrastructure"
    """The box failed, also when tried again. Never to be counted as a wrong answer."""


class Unjudged(Enum):
    """The expected output of a test that is run only for what it gives."""

    UNJUDGED = "unjudged"


UNJUDGED = Unjudged.UNJUDGED


@dataclass(frozen=True)
class Stdio:
    """A test of a whole program: text on its standard input, text expected on its standard output."""

    stdin: str
    expected: str | Unjudged = UNJUDGED


@dataclass(frozen=True)
class Call:
    """A test of a function: JSON arguments in, a JSON result out.

    `function` is a function of the program or a method of its class `Solution`, which is made without arguments.
    """

    function: str
    arguments: Sequence[Any]
    expected: Any = UNJUDGED


Test = Stdio | Call


@dataclass(frozen=True)
class Limits:
    """What a test may use. CPU time decides; the clock only ends programs that wait for nothing."""

    cpu_s: float = 2.0
    """CPU seconds of all its processes together. The same on a busy machine as on an idle one."""
    wall_s: float = 10.0
    """Seconds on the clock, without those spent waiting for a free CPU. Ends what sleeps."""
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
    """A program and its tests. The program is compiled once; every run of it is a fresh process."""

    program: str
    tests: Sequence[Test]
    limits: Limits | None = None
    """Where a task has its own (`dataclasses.replace` of the sandbox's, which `memory_mb`, `processes` and `disk_mb`
    must not exceed)."""
    compare: Callable[[Any, Any], bool] | None = None
    """(given, expected) -> equal, outside the box; None: `same_text` for `Stdio`, `same_value` for `Call`."""
    stop_at_failure: bool = False
    """Leave out the tests after the first that is not ok."""
    keep_output: bool = True
    """Keep in each outcome what the program wrote and returned; else it is dropped as soon as it is judged."""
    share_runs: bool = False
    """Judge tests of the same input that stand side by side by one run; what it costs counts for the first of them."""

    def __post_init__(self) -> None:
        if not self.tests:
            raise ValueError("tests: a job needs at least one test")


@dataclass(frozen=True)
class Outcome:
    """What one test gave."""

    status: Status
    output: str = ""
    """Standard output; of a `Call`, what the program printed."""
    result: Any = None
    """What a `Call` returned, as JSON."""
    error: str = ""
    """The end of standard error, or why the status is what it is."""
    cpu_s: float = 0.0
    wall_s: float = 0.0

    def bare(self) -> Outcome:
        """Without what the program wrote and returned; why the box failed stays."""
        error = self.error if self.status is Status.INFRASTRUCTURE else ""
        return replace(self, output="", result=None, error=error)


@dataclass(frozen=True)
class Verdict:
    """What a job gave: an outcome for each test, in order (fewer after `stop_at_failure`)."""

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
