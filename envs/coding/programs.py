"""From an answer to a program, from a problem to a job of the sandbox, from a result to cells of a table.

Problems of LiveCodeBench and LiveBench are run by their rules: after a preamble of star imports, and compared line by
line or value by value.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from decimal import Decimal, InvalidOperation
from typing import Any

from envs.coding.problem import Case, Comparison, Problem, values_of
from envs.coding.sandbox import Call, Job, JobResult, Limits, SandboxError, Status, Stdio, Test
from envs.coding.sandbox.judge import same_text
from rlanything.core.thoughts import after_thought
from rlanything.core.unittests import Row

FENCE = "```"
STAR_IMPORTS = (
    "string", "re", "datetime", "collections", "heapq", "bisect", "copy", "math", "random", "statistics", "itertools",
    "functools", "operator", "io", "sys", "json", "builtins", "typing",
)  # fmt: skip
"""What LiveCodeBench imports for every program, in its order; later names hide earlier ones."""
IMPORTS = tuple(name for name in STAR_IMPORTS if name not in ("builtins", "typing"))
PREAMBLE = (
    "\n".join([*(f"from {n} import *" for n in STAR_IMPORTS), *(f"import {n}" for n in IMPORTS)])
    + "\nsys.setrecursionlimit(50000)\n"
)
SOLUTION = "class Solution"
"""In a program with this text, the function is a method of the class (LiveCodeBench's rule)."""
ENTRY = "entry_point_of_tests"
"""The name that tests call. The star imports define names, such as `add`, that a problem's function may have."""
LEAST_MB = 64
"""Below this no interpreter starts."""
ROOM = 4
"""How many times the expected output a program may write. A right one may need three times: JSON escapes letters."""


def program_of(problem: Problem, answer: str) -> str:
    """The program in an answer, as it is run.

    It is the last fenced block or, without fences, the whole answer (LiveBench's rule); of an answer with a thought, of
    what follows it. An answer whose thought does not end is the empty program.
    """
    code = _unfenced(after_thought(answer) or "")
    if problem.prefix and not code.startswith(problem.prefix):
        code = f"{problem.prefix}\n{code}"
    if problem.compare is Comparison.TOKENS:
        return code
    home = f"Solution().{problem.function}" if SOLUTION in code else problem.function
    return f"{PREAMBLE}{code}\n{ENTRY} = {home}\n" if problem.function else PREAMBLE + code


def job_of(
    problem: Problem, program: str, cases: Sequence[Case], limits: Limits, *, stop_at_failure: bool = False
) -> Job:
    """A program and tests as a job.

    limits: the sandbox's. A problem may lower its memory limit, not raise it, and raises that of outputs to its need.
    """
    own = replace(
        limits,
        cpu_s=problem.time_s,
        wall_s=limits.wall_s * problem.time_s / limits.cpu_s,
        memory_mb=max(LEAST_MB, min(problem.memory_mb, limits.memory_mb)),
        output_kb=max(limits.output_kb, output_kb(problem)),
    )
    tests = [_test(problem, case) for case in cases]
    return Job(program, tests, own, COMPARE[problem.compare], stop_at_failure)


def output_kb(problem: Problem) -> int:
    """kB that a program may write, at least the sandbox's default. The same for all tests of the problem."""
    return max(Limits.output_kb, -(-ROOM * problem.longest_output // 1024))


def row(result: JobResult) -> Row:
    """A cell for each test: passed, failed, or None where the sandbox failed."""
    return tuple(
        None if o.status is Status.INFRASTRUCTURE else o.status is Status.OK for o in result.outcomes
    )


def passed(result: JobResult) -> bool:
    """Whether all tests passed. Raises `SandboxError` where the sandbox failed."""
    if result.status is Status.INFRASTRUCTURE:
        failed = next(o for o in result.outcomes if o.status is Status.INFRASTRUCTURE)
        raise SandboxError(f"the sandbox failed: {failed.error}")
    return result.status is Status.OK


def same_lines(given: str, expected: str) -> bool:
    """LiveCodeBench's rule: the same lines without outer blanks, or lines of equal numbers."""
    left, right = given.strip().split("\n"), expected.strip().split("\n")
    return len(left) == len(right) and all(
        a.strip() == b.strip() or _same_numbers(a, b) for a, b in zip(left, right, strict=True)
    )


def same_values(given: Any, expected: Any) -> bool:
    """Equal as Python values."""
    return bool(given == expected)


COMPARE: dict[Comparison, Callable[[Any, Any], bool]] = {
    Comparison.TOKENS: same_text,
    Comparison.LINES: same_lines,
    Comparison.VALUE: same_values,
}


def _same_numbers(a: str, b: str) -> bool:
    try:
        return [Decimal(word) for word in a.split()] == [Decimal(word) for word in b.split()]
    except InvalidOperation:
        return False


def _test(problem: Problem, case: Case) -> Test:
    if not problem.function:
        return Stdio(case.input, case.output)
    return Call(ENTRY, *values_of(case))


def _unfenced(answer: str) -> str:
    lines = answer.rstrip().split("\n")
    fences = [k for k, line in enumerate(lines) if FENCE in line]
    if len(fences) >= 2:
        return "\n".join(lines[fences[-2] + 1 : fences[-1]])
    if len(answer) > 1 and answer[0] == answer[-1] == "`":
        return answer[1:-1]
    return "\n".join(lines[:-1] if fences == [len(lines) - 1] else lines)
