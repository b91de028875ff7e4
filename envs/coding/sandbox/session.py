"""The progress of one job: its next request, and its outcomes so far. Knows no box."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import Any

from envs.coding.sandbox.judge import compiled, outcome
from envs.coding.sandbox.types import Call, Job, JobResult, Limits, Outcome, Status, Test

ATTEMPTS = 3
"""Times that a request is sent to a new box before it becomes `infrastructure`."""


class Session:
    """One job. `request` gives the next request; then `accept` takes its report, or `lose` says that there is none."""

    def __init__(self, job: Job, default: Limits) -> None:
        self.job, self.limits = job, job.limits or default
        self._limits = asdict(self.limits)
        self._program = job.program.encode("utf-8", "surrogatepass")
        self._outcomes: list[Outcome] = []
        self._attempts = 0
        for key in ("memory_mb", "processes", "disk_mb"):
            if getattr(self.limits, key) > getattr(default, key):
                raise ValueError(
                    f"limits.{key}: a job's {getattr(self.limits, key)} is above the sandbox's {getattr(default, key)}"
                )

    @property
    def done(self) -> bool:
        """Whether every test has an outcome."""
        stopped = self.job.stop_at_failure and self._outcomes and self._outcomes[-1].status is not Status.OK
        return bool(stopped) or len(self._outcomes) == len(self.job.tests)

    def result(self) -> JobResult:
        """The result of a job that is done."""
        return JobResult(tuple(self._outcomes))

    def request(self) -> tuple[dict[str, Any], bytes]:
        """The next test: numbers for the watcher, and the bytes that only the program's process reads."""
        parts = (self._program, *_asked(self.job.tests[len(self._outcomes)]))
        return {"limits": self._limits, "sizes": [len(part) for part in parts]}, b"".join(parts)

    def accept(self, report: Mapping[str, Any]) -> bool:
        """Take a report; False: send the request to another box. Raises `BadReportError`."""
        found = outcome(self.job, self.job.tests[len(self._outcomes)], report, self._limits)
        if found.status is Status.INFRASTRUCTURE:
            self.lose(found.error)
            return False
        self._attempts = 0
        self._add(found)
        if not compiled(report):
            self._give_up(found)
        elif self.job.share_runs:
            self._share(report)
        return True

    def _share(self, report: Mapping[str, Any]) -> None:
        """Judge the following tests of the same input by the same report."""
        tests, asked = self.job.tests, _asked(self.job.tests[len(self._outcomes) - 1])
        while not self.done and _asked(tests[len(self._outcomes)]) == asked:
            found = outcome(self.job, tests[len(self._outcomes)], report, self._limits)
            self._add(replace(found, cpu_s=0.0, wall_s=0.0))

    def lose(self, reason: str) -> None:
        """The box failed. The request is sent again; after `ATTEMPTS` times the test becomes `infrastructure`."""
        self._attempts += 1
        if self._attempts >= ATTEMPTS:
            self._add(Outcome(Status.INFRASTRUCTURE, error=f"{reason} ({self._attempts} attempts)"))
            self._attempts = 0

    def _add(self, found: Outcome) -> None:
        self._outcomes.append(found if self.job.keep_output else found.bare())

    def _give_up(self, found: Outcome) -> None:
        """A program that does not compile gives its outcome to all tests; the times count once."""
        while not self.done:
            self._add(replace(found, cpu_s=0.0, wall_s=0.0))


def _asked(test: Test) -> tuple[bytes, bytes]:
    """The part of a test that is sent to a box, its input: a call, or nothing, and standard input."""
    if isinstance(test, Call):
        return json.dumps([test.function, list(test.arguments)]).encode(), b""
    return b"", test.stdin.encode("utf-8", "surrogatepass")
