"""From the report of a box to an outcome. Expected outputs are compared here, outside of the box."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from envs.coding.sandbox.inside.fork import COMPILED, READY
from envs.coding.sandbox.types import UNJUDGED, Call, Job, Outcome, Status, Test
from rlanything.core.errors import EnvironmentFailure

ERROR_KEPT = 4000

ENDS = {
    "cpu": (Status.TIMEOUT, "more than {cpu_s:g} s of CPU time"),
    "wall": (Status.TIMEOUT, "not done after {wall_s:g} s"),
    "memory": (Status.MEMORY, "more than {memory_mb} MB of memory"),
    "output": (Status.OUTPUT_LIMIT, "more than {output_kb} kB of output"),
    "files": (Status.OUTPUT_LIMIT, "more than {files} files"),
    "setup": (Status.INFRASTRUCTURE, "the process could not be set up"),
    "starved": (Status.INFRASTRUCTURE, "the machine is too busy: the process could not run"),
    "oom": (Status.INFRASTRUCTURE, "the machine ran out of memory"),
}
"""The watcher's word for how a test was ended -> status and reason."""


class BadReportError(EnvironmentFailure):
    """A box sent something that is not a report: it is broken."""


def same_text(given: str, expected: str) -> bool:
    """The same words, whatever white space separates them (the rule of the reference code)."""
    return given.split() == expected.split()


def same_value(given: Any, expected: Any) -> bool:
    """Equal as decoded JSON: 1 equals 1.0, and a tuple is a list."""
    try:
        return bool(given == json.loads(json.dumps(expected)))
    except RecursionError:
        return False


def compiled(report: Mapping[str, Any]) -> bool:
    """Whether the program of a test's report compiled, so that other tests of it have other outcomes."""
    return _stage(report) == COMPILED


def outcome(job: Job, test: Test, report: Mapping[str, Any], limits: Mapping[str, Any]) -> Outcome:
    """The outcome that a test's report says. Raises `BadReportError`."""
    try:
        status, error = _ended(report, limits)
        code, cpu, wall = int(report["code"]), float(report["cpu"]), float(report["wall"])
        text, result = _text(report["out"], limits), _text(report["result"], limits)
        began = compiled(report)
    except (KeyError, TypeError, ValueError, OverflowError) as problem:
        raise BadReportError(f"a report without a proper {problem}") from problem
    value = None
    if not began:
        status = Status.SYNTAX if status in (Status.OK, Status.ERROR) else status
    elif status is Status.OK and code:
        status, error = Status.ERROR, error or f"exit code {code}"
    elif status is Status.OK:
        status, value, error = _judged(job, test, text, result, error)
    return Outcome(status, text, value, error[-ERROR_KEPT:], cpu, wall)


def _text(output: bytes, limits: Mapping[str, Any]) -> str:
    """An output as far as its limit."""
    return output[: limits["output_kb"] << 10].decode("utf-8", "replace")


def _stage(report: Mapping[str, Any]) -> int:
    """How far the fork came: 0, `READY` or `COMPILED`."""
    stage = report["stage"]
    if isinstance(stage, bool) or stage not in (0, READY, COMPILED):
        raise ValueError(f"stage: {stage!r}")
    return int(stage)


def _ended(report: Mapping[str, Any], limits: Mapping[str, Any]) -> tuple[Status, str]:
    end, error = report["end"], _text(report["err"], limits)[-ERROR_KEPT:]
    if end not in ("exit", "signal", *ENDS):
        raise ValueError(f"end: {end!r}")
    if _stage(report) < READY:
        end = "setup"
    if end == "exit":
        return Status.OK, error
    if end == "signal":
        return Status.ERROR, f"{error}\nsignal {-int(report['code'])}".strip()
    status, reason = ENDS[end]
    return status, f"{error}\n{reason.format(**limits)}".strip()


def _judged(job: Job, test: Test, text: str, result: str, error: str) -> tuple[Status, Any, str]:
    """Status, value and error of a test with exit code 0."""
    value: Any = text
    if isinstance(test, Call):
        try:
            value = json.loads(result)
        except (ValueError, TypeError, RecursionError):
            return Status.ERROR, None, f"{error}\nthe function gave no JSON value".strip()
    given = value if isinstance(test, Call) else None
    if test.expected is UNJUDGED:
        return Status.OK, given, error
    compare = job.compare or (same_value if isinstance(test, Call) else same_text)
    return (Status.OK if compare(value, test.expected) else Status.WRONG), given, error
