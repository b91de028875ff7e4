"""How long common commands take to start and answer, by the clock and in CPU seconds.

    python -m benchmarks.startup [--root DIR] [--repeats 3]

Each command is a process of its own. The lowest of the repeats is printed: other work on the machine can only add to
it. CPU seconds are of the process and its children, so they say what an idle machine would take.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table

COMMANDS = (
    ("--help",),
    ("config", "check"),
    ("config", "show"),
    ("train", "--arm", "ful"),
    ("buffer", "ls"),
    ("buffer", "diff", "full/seed-0"),
    ("rollouts", "show", "full"),
    ("replay", "full"),
    ("ls",),
    ("watch", "--once"),
    ("plan", "--arm", "full"),
)
"""`train --arm ful` is a typo: its answer is a message."""


@dataclass(frozen=True)
class Started:
    """The lowest seconds of one command, by the clock and of the CPU, and its exit code."""

    command: str
    seconds: float
    cpu: float
    code: int


def main(argv: Sequence[str] | None = None) -> int:
    """Measure every command and print a table; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.startup", description=__doc__.split("\n")[0])
    parser.add_argument("--root", type=Path, default=Path(), metavar="DIR", help="project; default: here")
    parser.add_argument("--repeats", type=int, default=3, metavar="N", help="starts of each; default: 3")
    args = parser.parse_args(argv)
    found = [measure(words, args.root.resolve(), args.repeats) for words in COMMANDS]
    table = Table("command", "seconds", "CPU seconds", "exit code")
    for one in found:
        table.add_row(one.command, f"{one.seconds:.2f}", f"{one.cpu:.2f}", str(one.code))
    Console().print(table)
    return 0


def measure(words: Sequence[str], root: Path, repeats: int = 3) -> Started:
    """The lowest times of `repeats` starts of a command in the project `root`."""
    runs = [_once(words, root) for _ in range(max(repeats, 1))]
    return Started(
        " ".join(words), min(r[0] for r in runs), min(r[1] for r in runs), max(code for *_, code in runs)
    )


def _once(words: Sequence[str], root: Path) -> tuple[float, float, int]:
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-m", "rlanything", "--root", str(root), *words],
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        check=False,
    )
    seconds, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime
    return seconds, cpu, done.returncode
