"""Feedback as unit tests that the reward model writes (paper, appendix C): rewards of programs and of tests.

The mathematics is `core.coding_signals`; here it meets the groups of an iteration.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import nan
from typing import Protocol

from rlanything.config import ArmConfig, Config
from rlanything.core.coding_signals import generated_advantages, program_advantages
from rlanything.core.types import ScoredJudgements, ScoredTrajectory
from rlanything.loop.critic import Remarks
from rlanything.loop.group import Group
from rlanything.loop.metrics import unit_test_metrics
from rlanything.loop.testwriter import Attempts, Examined


class Examines(Protocol):
    """Who writes the tests and runs them: `testwriter.UnitTestWriter`, or what a run stored of it."""

    def run(self, work: Sequence[Attempts], run_seed: int, iteration: int, *, write: bool) -> list[Examined]:
        """Tests for each task, run on its answers. `write=False`: the task's own tests alone."""
        ...


class UnitTests:
    """`Feedback` of a reward model that writes unit tests."""

    def __init__(self, config: Config, arm: ArmConfig, run_seed: int, writer: Examines) -> None:
        self.config = config
        self.arm = arm
        self.run_seed = run_seed
        self.writer = writer

    def judge(self, groups: Sequence[Group], iteration: int) -> list[Group]:
        """The groups with m tests, where the arm has them, and with what every program did on all tests."""
        work = [_attempts(group) for group in groups]
        found = self.writer.run(work, self.run_seed, iteration, write=self.arm.step_votes)
        return [replace(group, examined=examined) for group, examined in zip(groups, found, strict=True)]

    def policy_lessons(self, group: Group) -> list[ScoredTrajectory]:
        """Advantages of the pass rates; a program of which a test could not be run teaches nothing."""
        examined = _examined(group)
        tables, weight = examined.tables, self.config.signals.lambda_ if self.arm.step_votes else 0.0
        found = program_advantages(tables.dataset, tables.generated, tables.readable, weight)
        return [
            ScoredTrajectory(trajectory, (advantage,))
            for trajectory, advantage in zip(group.alive, found, strict=True)
            if advantage is not None
        ]

    def reward_lessons(self, groups: Sequence[Group]) -> list[ScoredJudgements]:
        """One lesson a task, of the tests that train."""
        lessons = []
        for examined in map(_examined, groups):
            tables = examined.tables
            row = tuple(generated_advantages(tables.dataset, tables.generated, tables.readable))
            if any(advantage is not None for advantage in row):
                lessons.append(ScoredJudgements((examined.judgement,), (row,), (1.0,)))
        return lessons

    def remarks(self, group: Group) -> Remarks:
        """The tests with the share of programs that pass each."""
        text = _examined(group).criticism
        return Remarks(text, text)

    def objection(self, group: Group) -> str:
        """A rewritten problem's tests must agree with each other: a known solution passes them, or two programs do."""
        if _examined(group).agreed:
            return ""
        return "no two different programs pass all of its tests, so that they may contradict each other"

    def metrics(self, groups: Sequence[Group]) -> dict[str, float]:
        """Shares of readable, of right and of telling tests, and of tasks that could not be asked about."""
        if not self.arm.step_votes:
            return {}
        unasked = [not _examined(group).judgement.votes for group in groups]
        return {"unasked": sum(unasked) / len(unasked) if unasked else nan, **unit_test_metrics(groups)}


def _attempts(group: Group) -> Attempts:
    openings = [t.first_observation for t in group.alive]
    answers = tuple(trajectory.steps[-1].action for trajectory in group.alive)
    return Attempts(group.task, openings[0] if openings else group.task.instruction, answers)


def _examined(group: Group) -> Examined:
    if group.examined is None:
        raise ValueError(f"slot {group.slot}: the group was not examined")
    return group.examined
