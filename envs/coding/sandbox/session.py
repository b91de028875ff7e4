"""A job on its way: which request comes next, and what its reports amount to. Knows no box."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import Any

from envs.coding.sandbox.judge import compiled, outcome
from envs.coding.sandbox.types import Call, Job, Limits, Outcome, Status, Test, Verdict

ATTEMPTS = 3
"""Times that a request is sent to fresh boxes before it is reported as infrastructure."""
CODE_KB = 64 << 10
"""Largest compiled program."""


class Session:
    """One job. `request` gives the next frame, `accept` takes its report, `lose` says that there will be none."""

    def __init__(self, job: Job, default: Limits) -> None:
        self.job, self.limits = job, job.limits or default
        self._limits = asdict(self.limits)
        self._outcomes: list[Outcome] = []
        self._compiled, self._attempts = False, 0
        for key in ("memory_mb", "processes", "disk_mb"):
            if getattr(self.limits, key) > getattr(default, key):
                raise ValueError(
                    f"limits.{key}: a job's {getattr(self.limits, key)} is above the sandbox's {getattr(default, key)}"
                )

    @property
    def done(self) -> bool:
        """Is there nothing more to ask?"""
        stopped = self.job.stop_at_failure and self._outcomes and self._outcomes[-1].status is not Status.OK
        return bool(stopped) or len(self._outcomes) == len(self.job.tests)

    def verdict(self) -> Verdict:
        """The verdict of a job that is done."""
        return Verdict(tuple(self._outcomes))

    def request(self) -> dict[str, Any]:
        """The next frame for the box that this session has."""
        if not self._compiled:
            return {"source": self.job.program, "limits": {**self._limits, "output_kb": CODE_KB}}
        return {**_asked(self.job.tests[len(self._outcomes)]), "limits": self._limits}

    def accept(self, report: Mapping[str, Any]) -> bool:
        """Take a report; False asks for another box. Raises `BadReport`."""
        if self._compiled:
            found = outcome(self.job, self.job.tests[len(self._outcomes)], report, self._limits)
        else:
            found = compiled(report, self._limits)
        if found.status is Status.INFRASTRUCTURE:
            self.lose(found.error)
            return False
        if not self._compiled and found.status is Status.OK:
            self._compiled = True
            return True
        self._attempts = 0
        self._add(found)
        if self._compiled and self.job.share_runs:
            self._share(report)
        return True

    def _share(self, report: Mapping[str, Any]) -> None:
        """Judge the tests that follow with the same input by the same report."""
        tests, asked = self.job.tests, _asked(self.job.tests[len(self._outcomes) - 1])
        while not self.done and _asked(tests[len(self._outcomes)]) == asked:
            found = outcome(self.job, tests[len(self._outcomes)], report, self._limits)
            self._add(replace(found, cpu_s=0.0, wall_s=0.0))

    def lose(self, reason: str) -> None:
        """The box failed. The request is sent again, or after `ATTEMPTS` times reported and left."""
        self._attempts += 1
        if self._attempts >= ATTEMPTS:
            self._add(Outcome(Status.INFRASTRUCTURE, error=f"{reason} ({self._attempts} attempts)"))
            self._attempts = 0
        self._compiled = False

    def _add(self, found: Outcome) -> None:
        """Without a compiled program all tests have the same outcome; its costs count once."""
        found = found if self.job.keep_output else found.bare()
        self._outcomes.append(found)
        if not self._compiled and not self.job.stop_at_failure:
            free = replace(found, cpu_s=0.0, wall_s=0.0)
            self._outcomes += [free] * (len(self.job.tests) - len(self._outcomes))


def _asked(test: Test) -> dict[str, Any]:
    """What a box is told of a test: its input."""
    if isinstance(test, Call):
        return {"function": test.function, "arguments": json.dumps(list(test.arguments))}
    return {"stdin": test.stdin}
