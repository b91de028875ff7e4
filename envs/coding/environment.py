"""An episode of one step: the response is a program, and it succeeds when it passes every test of its problem."""

from __future__ import annotations

from envs.coding.judging import passed, program_of
from envs.coding.problem import Problem
from envs.coding.sandbox import Status, Verdict
from envs.coding.verdicts import Verdicts
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
"""What a status is called in observations and explanations."""


class CodingEnvironment:
    """One problem, one program, and the verdict that the family has or finds."""

    def __init__(self, verdicts: Verdicts) -> None:
        self._verdicts = verdicts
        self._problem: Problem | None = None

    def reset(self, task: Task, seed: int) -> Observation:
        """The statement, and the code to start from where there is some that the statement does not show."""
        self._problem = Problem.from_task(task)
        return Observation(opening(self._problem))

    def step(self, action: str) -> StepResult:
        """Run the program. The answer tells what happened, and no expected output.

        Raises `SandboxError` when the sandbox failed: that says nothing about the program.
        """
        if self._problem is None:
            raise RuntimeError("step before reset")
        problem = self._problem
        verdict = self._verdicts.of([(problem, program_of(problem, action), problem.cases)])[0]
        success = passed(verdict)
        return StepResult(Observation(report(verdict)), True, success)

    def close(self) -> None:
        """Nothing to release."""


def opening(problem: Problem) -> str:
    """What a model reads."""
    code = problem.prefix or problem.starter
    if not code.strip() or code.strip() in problem.statement:
        return problem.statement
    return f"{problem.statement}\n\n{code}"


def explained(verdict: Verdict) -> str:
    """What became of a program, in a few words. Raises `SandboxError` when the sandbox failed."""
    passed(verdict)
    return WORDS[verdict.status]


def report(verdict: Verdict) -> str:
    """How many tests passed, and what the first failure was."""
    text = f"{verdict.passed} of {len(verdict.outcomes)} tests passed"
    failed = [(k, o.status) for k, o in enumerate(verdict.outcomes, 1) if o.status is not Status.OK]
    return f"{text}; test {failed[0][0]}: {WORDS[failed[0][1]]}." if failed else f"{text}."
