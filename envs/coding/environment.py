"""An episode of one step: the response is a program; success means that it passes every test of its problem."""

from __future__ import annotations

from envs.coding.problem import Problem
from envs.coding.program_judge import ProgramJudge
from envs.coding.programs import passed, program_of
from envs.coding.sandbox import JobResult, Status
from rlanything.core.types import Observation, StepResult, Task

WORDS = {
    Status.OK: "passed",
    Status.WRONG: "another output",
    Status.ERROR: "the program failed",
    Status.SYNTAX: "the program does not compile",
    Status.TIMEOUT: "too slow",
    Status.MEMORY: "too much memory",
    Status.OUTPUT_LIMIT: "too much output",
}
"""The text of a status in observations and explanations."""


class CodingEnvironment:
    """One problem and one program, judged by the family's `ProgramJudge`."""

    def __init__(self, judge: ProgramJudge) -> None:
        self._judge = judge
        self._problem: Problem | None = None

    def reset(self, task: Task, seed: int) -> Observation:
        """The statement, and the starter code where the statement does not show it."""
        self._problem = Problem.from_task(task)
        return Observation(opening(self._problem))

    def step(self, action: str) -> StepResult:
        """Run the program. The observation says what happened, without expected outputs.

        Raises `SandboxError` when the sandbox failed, which says nothing about the program.
        """
        if self._problem is None:
            raise RuntimeError("step before reset")
        problem = self._problem
        result = self._judge.judge([(problem, program_of(problem, action), problem.cases)])[0]
        success = passed(result)
        return StepResult(Observation(report(result)), True, success)

    def close(self) -> None:
        """Nothing to release."""


def opening(problem: Problem) -> str:
    """The text that a model reads first."""
    code = problem.prefix or problem.starter
    if not code.strip() or code.strip() in problem.statement:
        return problem.statement
    return f"{problem.statement}\n\n{code}"


def explained(result: JobResult) -> str:
    """How a program did, in a few words. Raises `SandboxError` when the sandbox failed."""
    passed(result)
    return WORDS[result.status]


def report(result: JobResult) -> str:
    """How many tests passed, and what the first failure was."""
    text = f"{result.passed} of {len(result.outcomes)} tests passed"
    failed = [(k, o.status) for k, o in enumerate(result.outcomes, 1) if o.status is not Status.OK]
    return f"{text}; test {failed[0][0]}: {WORDS[failed[0][1]]}." if failed else f"{text}."
