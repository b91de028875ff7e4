"""Unit tests in the loop: rewards of programs and of tests (paper, appendix C), computed by `core.coding_signals`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import nan
from typing import Protocol

from rlanything.config import ArmConfig, Config
from rlanything.core.coding_signals import generated_advantages, program_advantages
from rlanything.core.types import Lesson, ScoredReplies, Task, Trajectory
from rlanything.core.unittests import Tables
from rlanything.loop.group import Group, compared
from rlanything.loop.reward_model import CriticInput, FailedRollout, FailedStep
from rlanything.rewards.unit_tests.metrics import unit_test_metrics
from rlanything.rewards.unit_tests.writer import Attempts, Examined, examined


class TestSource(Protocol):
    """Where tests and their results come from: `writer.UnitTestWriter`, `oracle.OracleTests`, `records.StoredTests`."""

    def examine(
        self, work: Sequence[Attempts], run_seed: int, iteration: int, *, write: bool
    ) -> list[Examined]:
        """Tests for each task, run on its answers. write=False: only the task's own tests are run."""
        ...

    def failed_tests(self, task: Task, tables: Tables) -> list[dict[int, str]]:
        """For each program, the tests that it fails: number -> text. Which tests, the task family says."""
        ...


class UnitTestModel:
    """`RewardModel` that writes unit tests."""

    def __init__(self, config: Config, arm: ArmConfig, run_seed: int, tests: TestSource) -> None:
        self.config = config
        self.arm = arm
        self.run_seed = run_seed
        self.tests = tests

    def judge(self, groups: Sequence[Group], iteration: int) -> list[Group]:
        """The groups with the results of every program on the task's own tests and, with `step_votes`, on m more."""
        work = [_attempts(group) for group in groups]
        found = self.tests.examine(work, self.run_seed, iteration, write=self.arm.step_votes)
        return [replace(group, findings=result) for group, result in zip(groups, found, strict=True)]

    def score_episodes(self, group: Group) -> Group:
        """Advantages of the pass rates. A program does not train when one of the task's own tests could not be run."""
        signals, tables = self.config.signals, examined(group).tables
        weight = self.arm.lambda_of(signals)
        found = program_advantages(tables.dataset, tables.generated, tables.readable, weight, signals.written)
        kept = [k for k, episode in enumerate(group.episodes) if compared(episode)]
        advantages = {k: (x,) for k, x in zip(kept, found, strict=True) if x is not None}
        return group.with_advantages(advantages)

    def score_replies(self, groups: Sequence[Group]) -> list[Group]:
        """The groups with one lesson a task: the advantages of its tests."""
        return [replace(group, findings=_scored(examined(group))) for group in groups]

    def lessons(self, group: Group) -> list[ScoredReplies]:
        """One item for a task with tests that train, else none."""
        result = examined(group)
        return [] if result.lesson is None else [ScoredReplies.of([(result, result.lesson)])]

    def critic_input(self, group: Group) -> CriticInput:
        """Each test with the share of programs that pass it, and each wrong program with the tests that it fails.

        Rollouts without a program come last.
        """
        result = examined(group)
        kept = [episode.trajectory for episode in group.episodes if compared(episode)]
        failed = self.tests.failed_tests(group.task, result.tables)
        wrong = [_failed(t, tests) for t, tests in zip(kept, failed, strict=True) if t.failed]
        unwritten = [_unwritten(t) for t in group.trajectories if t.failed and not t.steps]
        return CriticInput(result.criticism, (*wrong, *unwritten))

    def objection(self, group: Group) -> str:
        """Why the tests of a rewritten problem do not agree (`Examined.agreed`), or ''."""
        if examined(group).agreed:
            return ""
        return "no two different programs pass all of its tests, so that they may contradict each other"

    def metrics(self, groups: Sequence[Group]) -> dict[str, float]:
        """`unit_test_metrics`, and the share of tasks without written tests. Empty where the arm asks for none."""
        if not self.arm.step_votes:
            return {}
        unasked = [not examined(group).tests for group in groups]
        return {"unasked": sum(unasked) / len(unasked) if unasked else nan, **unit_test_metrics(groups)}


def _scored(result: Examined) -> Examined:
    tables = result.tables
    lesson = Lesson(tuple(generated_advantages(tables.dataset, tables.generated, tables.readable)), 1.0)
    return replace(result, lesson=lesson if lesson.trains else None)


def _failed(trajectory: Trajectory, tests: Mapping[int, str]) -> FailedRollout:
    """A wrong program as a critic reads it."""
    steps = tuple(FailedStep(number, f"failed test: {text}") for number, text in tests.items())
    opening = f"The program:\n{trajectory.steps[-1].action}"
    return FailedRollout(trajectory.rollout, opening, steps, f"The program fails {len(tests)} tests.")


def _unwritten(trajectory: Trajectory) -> FailedRollout:
    """A rollout without a program as a critic reads it: the problem does not fit the policy's context."""
    return FailedRollout(trajectory.rollout, "No program was written.", (), trajectory.error)


def _attempts(group: Group) -> Attempts:
    """The group's task, with the answers of the episodes that did not crash."""
    kept = [episode.trajectory for episode in group.episodes if compared(episode)]
    opening = kept[0].first_observation if kept else group.task.instruction
    return Attempts(group.task, opening, tuple(t.steps[-1].action for t in kept))
