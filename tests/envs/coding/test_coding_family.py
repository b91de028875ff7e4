"""The family behind the loop's protocols, with real programs in the real sandbox."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
from format_cases import SUM, livebench_question, livecodebench_problem, summing

from envs.coding.environment import CodingEnvironment
from envs.coding.examination import examine
from envs.coding.family import CodingFamily
from envs.coding.formats.files import FORMATS
from envs.coding.formats.record import Record
from envs.coding.problem import Problem
from envs.coding.program_judge import ProgramJudge
from envs.coding.programs import passed, program_of
from envs.coding.sandbox import Job, JobResult, Outcome, Sandbox, SandboxError, Status
from rlanything.core.protocols import Environment, Teacher
from rlanything.core.types import Task


def test_it_is_a_family_and_a_teacher(family: CodingFamily) -> None:
    assert isinstance(family, Teacher)
    assert isinstance(family.environment(), Environment)


def test_an_episode_is_one_program(family: CodingFamily) -> None:
    environment = family.environment()
    assert environment.reset(summing(), 0).text == "Print the sum of a list."
    answer = environment.step(SUM)
    assert (answer.done, answer.success, answer.observation.text) == (True, True, "2 of 2 tests passed.")
    environment.close()


@pytest.mark.parametrize(
    ("program", "said"),
    [
        ("print(3)", "1 of 2 tests passed; test 2: another output."),
        ("print(", "0 of 2 tests passed; test 1: the program does not compile."),
        ("1 / 0", "0 of 2 tests passed; test 1: the program failed."),
        ("while True: pass", "0 of 2 tests passed; test 1: too slow."),
        ("print('x' * 10**7)", "0 of 2 tests passed; test 1: too much output."),
        ("", "0 of 2 tests passed; test 1: another output."),
    ],
)
def test_a_wrong_program_fails_and_is_told_why(program: str, said: str, family: CodingFamily) -> None:
    environment = family.environment()
    environment.reset(replace(Problem.from_task(summing()), time_s=0.2).to_task(), 0)
    answer = environment.step(program)
    assert (answer.done, answer.success, answer.observation.text) == (True, False, said)


class Failing:
    """Stands where a machine would have to break: the real verdicts, but for the tests on which the boxes fail."""

    def __init__(self, sandbox: Sandbox, stdin: str) -> None:
        self._sandbox, self.limits, self.stdin, self.tests = sandbox, sandbox.limits, stdin, 0

    def judge(self, jobs: Sequence[Job]) -> list[JobResult]:
        self.tests += sum(len(job.tests) for job in jobs)
        broken = Outcome(Status.INFRASTRUCTURE, error="the machine is too busy")
        return [
            JobResult(
                tuple(
                    broken if test.stdin == self.stdin else outcome
                    for test, outcome in zip(job.tests, verdict.outcomes, strict=True)
                )
            )
            for job, verdict in zip(jobs, self._sandbox.judge(jobs), strict=True)
        ]


def test_a_failing_sandbox_is_nobodys_wrong_answer(family: CodingFamily) -> None:
    failing = Failing(family.sandbox(), "3 4\n")
    verdicts = ProgramJudge(lambda: failing)
    environment = CodingEnvironment(verdicts)
    environment.reset(summing(), 0)
    with pytest.raises(SandboxError, match="too busy"):
        environment.step(SUM)
    found = examine(verdicts, [(summing(), [SUM], ["test: 5 5 -> 10", "none"])])[0]
    assert (found.dataset, found.generated) == (((True, None),), ((True, False),))
    failing.stdin = ""
    asked = failing.tests
    assert environment.step(SUM).success  # what failed was not kept, and only that is run again
    assert failing.tests == asked + 1


def test_fences_thoughts_and_prefixes() -> None:
    problem = Problem.from_task(summing())
    assert program_of(problem, "a\n```python\nx\n```\nb\n```python\ny\n```\nc") == "y"
    assert program_of(problem, "<think>```\nz\n```</think>```\ny\n```") == "y"
    assert program_of(problem, "```\nz\n```</think>```\ny\n```") == "y"
    assert (
        program_of(problem, "<think>```\nz\n```") == program_of(problem, "<think>```\nz\n```</think>") == ""
    )
    assert program_of(problem, "y\n```") == "y"
    assert program_of(problem, "`y`") == "y"
    assert program_of(problem, "x = 1\nprint(x)\n") == "x = 1\nprint(x)"
    completion = Problem("p", problem.cases, prefix="def f():\n    x = 1")
    assert program_of(completion, "    return x") == "def f():\n    x = 1\n    return x"
    assert program_of(completion, "def f():\n    x = 1\n    return x") == "def f():\n    x = 1\n    return x"


def test_functions_and_livecodebench_preamble(family: CodingFamily) -> None:
    """Types are known without an import, as LiveCodeBench has it; a tuple counts as a list."""
    problem = FORMATS["livecodebench"].read(Record(livecodebench_problem()))
    program = "class Solution:\n    def add(self, xs: List[int], y: int) -> int:\n        return sum(xs) + y"
    answers = (
        program,
        program.replace("+ y", "- y"),
        "def add(xs, y): return reduce(lambda a, b: a + b, xs, y)",
    )
    work = [(problem, program_of(problem, text), problem.cases) for text in answers]
    assert [passed(v) for v in ProgramJudge(family.sandbox).judge(work)] == [True, False, True]
    lines = FORMATS["livebench"].read(Record(livebench_question()))
    work = [(lines, program_of(lines, f"```python\n{SUM}\n```"), lines.cases)]
    assert passed(ProgramJudge(family.sandbox).judge(work)[0])


def test_demonstrations(family: CodingFamily, tasks: list[Task]) -> None:
    right = [family.demonstrate(task, 0, 0.0)[0] for task in tasks[:20]]
    wrong = [family.demonstrate(task, 0, 1.0)[0][1] for task in tasks[:20]]
    for task, (observation, text), other in zip(tasks, right, wrong, strict=False):
        assert observation.text == task.instruction
        labels = family.label_steps(task, [text, other, "print("])
        assert (labels[0], labels[2]) == (True, False)
        assert family.explain(task, [text, "print("]) == ["passed", "the program does not compile"]
        assert text != other
    mixed = [family.demonstrate(tasks[0], seed, 0.5)[0][1] for seed in range(40)]
    assert 5 < mixed.count(right[0][1]) < 35
    assert mixed == [family.demonstrate(tasks[0], seed, 0.5)[0][1] for seed in range(40)]


def test_demonstrated_tests(family: CodingFamily, tasks: list[Task]) -> None:
    """Right ones pass the reference solution, wrong ones do not, and both are new."""
    for task in tasks[:15]:
        replies = [family.demonstrate_test(task, 1, noise) for noise in (0.0, 1.0)]
        found = family.examine([(task, [task.payload["solution"]], replies)])[0]
        assert found.generated == ((True, False),)
