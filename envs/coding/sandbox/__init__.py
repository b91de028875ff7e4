"""Runs untrusted programs against tests: `open_sandbox`, a batch of `Job`s, a `Verdict` for each.

    with open_sandbox("bwrap", workers=2, limits=Limits(cpu_s=2)) as sandbox:
        verdicts = sandbox.run([Job(program, [Stdio("1 2\\n", "3\\n")]), Job(other, [Call("add", [1, 2], 3)])])

What each back end contains, and what none does: docs/coding.md.
"""

from envs.coding.sandbox.open import BACKENDS, open_sandbox
from envs.coding.sandbox.pool import Sandbox
from envs.coding.sandbox.types import (
    MOST_WORKERS,
    UNJUDGED,
    Call,
    Job,
    Limits,
    Outcome,
    SandboxError,
    Status,
    Stdio,
    Test,
    Verdict,
)

__all__ = [
    "BACKENDS",
    "MOST_WORKERS",
    "UNJUDGED",
    "Call",
    "Job",
    "Limits",
    "Outcome",
    "Sandbox",
    "SandboxError",
    "Status",
    "Stdio",
    "Test",
    "Verdict",
    "open_sandbox",
]
