"""Running one command of the command line as a child process, and reading from its log how it ended."""

from __future__ import annotations

import ctypes
import os
import re
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from rlanything.stages.missing import Command

LAST_LINES = 12
"""Lines of a log that are kept as the error."""
MOST_READ = 4000
"""Bytes at the end of a log that are read."""


def start_command(root: Path, command: Command, log: Path, inherit: Sequence[int]) -> subprocess.Popen[bytes]:
    """Start `rlanything --root <root> <command>` with its output appended to `log`.

    Args:
        root: the project in which it runs.
        command: its arguments.
        log: a text file; a line with the command comes first.
        inherit: file descriptors that the child keeps open.
    """
    with log.open("ab") as output:
        output.write(f"$ rlanything --root {root} {' '.join(command)}\n".encode())
        output.flush()
        return subprocess.Popen(
            [sys.executable, "-m", "rlanything", "--root", str(root), *command],
            stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT, start_new_session=True,
            pass_fds=inherit, env={**os.environ, "OMP_NUM_THREADS": "1"},
            preexec_fn=_die_with_parent,  # noqa: PLW1509  this process has one thread
        )  # fmt: skip


def kill(child: subprocess.Popen[bytes] | None) -> None:
    """Kill a child that still runs, and wait for its end."""
    if child is not None and child.poll() is None:
        child.kill()
        child.wait()


def error_text(log: Path, code: int) -> str:
    """The last lines of the last command in a log; the exit code where it printed nothing, and any signal."""
    with log.open("rb") as file:
        file.seek(max(0, file.seek(0, os.SEEK_END) - MOST_READ))
        text = file.read().decode(errors="replace")
    said = text.rpartition("\n$ rlanything")[2].partition("\n")[2] if "\n$ rlanything" in text else text
    lines = [line for line in said.splitlines() if line.strip()][-LAST_LINES:]
    if code < 0:
        lines.append(f"killed by signal {-code}")
    return "\n".join(lines or [f"exit code {code}"])


def signature(error: str) -> str:
    """What two errors with the same cause have in common: the last line, without its numbers."""
    return re.sub(r"\d+", "#", error.strip().splitlines()[-1]) if error.strip() else ""


def _die_with_parent() -> None:
    """On Linux the kernel kills the child when its worker ends. Elsewhere it runs on, and keeps its claim."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # 1: PR_SET_PDEATHSIG
