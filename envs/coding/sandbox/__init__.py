"""Runs untrusted programs against tests: a `Job` goes in, a `JobResult` comes out.

    with open_sandbox("bwrap", workers=2, limits=Limits(cpu_s=2)) as sandbox:
        results = sandbox.judge([Job(program, [Stdio("1 2\\n", "3\\n")]), Job(other, [Call("add", [1, 2], 3)])])

What each back end contains, and what none does: docs/sandbox.md. `envs/coding` reads programs and
tests from the texts of models (`programs.py`) and remembers outcomes (`program_judge.py`).
"""

from envs.coding.sandbox.factory import BACKENDS, open_sandbox
from envs.coding.sandbox.pool import Sandbox
from envs.coding.sandbox.types import (
    MOST_WORKERS,
    UNJUDGED,
    Call,
    Job,
    JobResult,
    Limits,
    Outcome,
    SandboxError,
    Status,
    Stdio,
    Test,
)

__all__ = [
    "BACKENDS",
    "MOST_WORKERS",
    "UNJUDGED",
    "Call",
    "Job",
    "JobResult",
    "Limits",
    "Outcome",
    "Sandbox",
    "SandboxError",
    "Status",
    "Stdio",
    "Test",
    "open_sandbox",
]
