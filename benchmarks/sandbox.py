"""Speed of the sandbox: `python -m benchmarks.sandbox` prints tests per second of every back end that works here.

The baseline is the reference code's method: it forks the harness for each test, runs the program there with `exec`,
and reads the output from a queue, with a limit of wall time and without isolation. All methods judge the same programs
on the same number of CPUs. They take turns, and each rate is divided by the baseline's rate of the same round, so that
other load on the machine affects all alike. Cores divided by the CPU time of a test is the rate of an idle machine.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import multiprocessing
import os
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from envs.coding.sandbox.factory import BACKENDS, open_sandbox
from envs.coding.sandbox.judge import same_text
from envs.coding.sandbox.pool import Sandbox
from envs.coding.sandbox.types import Job, SandboxError, Stdio, Unjudged

TESTS = 8
"""Tests of a program: the most in the reference's data."""
LIMIT_S = 2.0
REFERENCE = "fork and exec"
TICK_S = 0.001
PROGRAMS = {
    "a, b = map(int, input().split())\nprint(a + b)\n": lambda k: (f"{k} {k + 1}\n", f"{2 * k + 1}\n"),
    "print(*sorted(map(int, input().split())))\n": lambda k: (
        " ".join(str((k + 7) * i % 101) for i in range(100)),
        " ".join(map(str, sorted((k + 7) * i % 101 for i in range(100)))),
    ),
    "from collections import Counter\nimport sys\n"
    "for word, n in sorted(Counter(sys.stdin.read().split()).items()):\n    print(word, n)\n": lambda k: (
        "b a " * (k + 1),
        f"a {k + 1}\nb {k + 1}\n",
    ),
    "n = int(input())\nways = [1] + [0] * n\nfor coin in (1, 2, 5):\n    for i in range(coin, n + 1):\n"
    "        ways[i] += ways[i - coin]\nprint(ways[n])\n": lambda k: ("10\n", "10\n"),
}
"""Short solutions with (stdin, stdout) of their k-th test."""


def jobs(programs: int) -> list[Job]:
    """That many programs, `TESTS` tests each."""
    sources = list(PROGRAMS.items())
    chosen = (sources[i % len(sources)] for i in range(programs))
    return [Job(source, [Stdio(*test(k)) for k in range(TESTS)]) for source, test in chosen]


def sandboxed(sandbox: Sandbox, work: Sequence[Job]) -> int:
    """Tests that passed."""
    return sum(result.passed for result in sandbox.judge(work))


def forked(width: int, work: Sequence[Job]) -> int:
    """Tests that passed, by the reference's method, `width` processes at a time."""
    tests = [(job.program, test) for job in work for test in job.tests if isinstance(test, Stdio)]
    passed = 0
    for first in range(0, len(tests), width):
        chunk = tests[first : first + width]
        printed = _fork_chunk([(program, test.stdin) for program, test in chunk])
        passed += sum(
            text is not None and not isinstance(test.expected, Unjudged) and same_text(text, test.expected)
            for text, (_, test) in zip(printed, chunk, strict=True)
        )
    return passed


def _fork_chunk(runs: Sequence[tuple[str, str]]) -> list[str | None]:
    fork = multiprocessing.get_context("fork")
    queues = [fork.Queue() for _ in runs]
    children = [
        fork.Process(target=_exec, args=(*run, queue)) for run, queue in zip(runs, queues, strict=True)
    ]
    for child in children:
        child.start()
    deadline = time.monotonic() + LIMIT_S
    while any(child.is_alive() for child in children):
        if time.monotonic() > deadline:
            for child in children:
                child.terminate()
        time.sleep(TICK_S)
    return [
        queue.get() if child.exitcode == 0 else None for child, queue in zip(children, queues, strict=True)
    ]


def _exec(program: str, stdin: str, queue: Any) -> None:
    output = io.StringIO()
    sys.stdin = io.StringIO(stdin)
    with contextlib.redirect_stdout(output):
        exec(program, {"__name__": "__main__"})  # noqa: S102 - the method that is measured, on our own programs
    queue.put(output.getvalue())


def cpu_s() -> float:
    """CPU seconds of this process and of all that it has waited for."""
    return sum(os.times()[:4])


@dataclass
class Method:
    """A way to judge, how to close it, and its rates and CPU time so far."""

    judge: Callable[[Sequence[Job]], int]
    close: Callable[[], None] = lambda: None
    rates: list[float] = field(default_factory=list)
    cpu_s: float = 0.0

    def round(self, work: Sequence[Job], total: int) -> bool:
        """Judge all jobs once; whether all results are right."""
        start, used = time.perf_counter(), cpu_s()
        right = self.judge(work) == total
        self.rates.append(total / (time.perf_counter() - start))
        self.cpu_s += cpu_s() - used
        return right

    def finish(self) -> None:
        """Close it. The CPU time of boxes, including their start, is known after they have ended."""
        used = cpu_s()
        self.close()
        self.cpu_s += cpu_s() - used


def opened(width: int, options: dict[str, Any]) -> Iterator[tuple[str, Sandbox]]:
    """A sandbox of every back end that starts; the others are named with the reason."""
    for name in BACKENDS:
        try:
            yield name, open_sandbox(name, workers=width, trusted=True, **options.get(name, {}))
        except SandboxError as error:
            print(f"{name}: not measured: {error}", file=sys.stderr)


def measure(programs: int, rounds: int, options: dict[str, Any]) -> dict[str, Any]:
    """Median tests/s, ratio and CPU time of a test, by method. Raises `SandboxError` for a wrong result."""
    width, work = os.cpu_count() or 1, jobs(programs)
    total = sum(len(job.tests) for job in work)
    methods = {REFERENCE: Method(partial(forked, width))}
    try:
        for name, sandbox in opened(width, options):
            methods[name] = Method(partial(sandboxed, sandbox), sandbox.close)
        for _ in range(rounds):
            for name, method in methods.items():
                if not method.round(work, total):
                    raise SandboxError(f"{name} gave a wrong result")
    finally:
        for method in methods.values():
            method.finish()
    return {name: _row(name, method, methods[REFERENCE], total * rounds) for name, method in methods.items()}


def _row(name: str, method: Method, reference: Method, tests: int) -> dict[str, float | None]:
    ratios = [rate / base for rate, base in zip(method.rates, reference.rates, strict=True)]
    return {
        "tests_per_s": round(statistics.median(method.rates), 1),
        "ratio": round(statistics.median(ratios), 2),
        # a daemon counts the CPU time of containers
        "cpu_ms": None if name == "docker" else round(1000 * method.cpu_s / tests, 2),
    }


def main() -> None:
    """Command line: print the table, or JSON."""
    parser = argparse.ArgumentParser("python -m benchmarks.sandbox", description=__doc__)
    parser.add_argument("--programs", type=_positive, default=40, help="programs a round, 8 tests each (40)")
    parser.add_argument("--rounds", type=_positive, default=5, help="rounds; medians are printed (5)")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--image", help="what the back end docker runs (python:3.11-slim)")
    asked = parser.parse_args()
    found = measure(asked.programs, asked.rounds, {"docker": {"image": asked.image}})
    if asked.json:
        print(json.dumps(found, indent=1))
        return
    print(f"{'method':<14} {'tests/s':>8} {'ratio':>6} {'CPU ms a test':>14}")
    for name, row in found.items():
        cpu = "-" if row["cpu_ms"] is None else row["cpu_ms"]
        print(f"{name:<14} {row['tests_per_s']:>8} {row['ratio']:>6} {cpu:>14}")


def _positive(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not an integer above 0")
    return int(text)


if __name__ == "__main__":
    main()
