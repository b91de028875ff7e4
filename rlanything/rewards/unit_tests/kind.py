"""Unit tests for programs, as a kind of reward model (`rewards.kind.RewardKind`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from rlanything.config import ArmConfig, Config
from rlanything.core.protocols import TaskFamily
from rlanything.core.types import Json, Lesson
from rlanything.rewards.protocols import PanelEvaluation, Replies, StoredIteration, WarmStart
from rlanything.rewards.requirements import examiner, testing_teacher

if TYPE_CHECKING:
    from rlanything.loop.chat_model import ChatModel
    from rlanything.loop.group import Group
    from rlanything.loop.prompts import Prompts
    from rlanything.loop.reward_model import RewardModel


class UnitTests:
    """m unit tests for every task, run on the programs of its episodes."""

    replies = Replies(
        unit="tests a task",
        panel="tested programs",
        content="test",
        invalid="invalid_tests",
        settings="the judge template and judge.max_tokens",
        per_task=True,
    )

    def check(self, config: Config, family: TaskFamily) -> None:
        """Raise `ConfigError` for a family that runs no programs, or cannot write tests for a configured oracle."""
        examiner(family)
        if config.has_oracle:
            testing_teacher(family)

    def count_replies(self, config: Config, episodes: int) -> int:
        """m for each task, whose episodes share the tests."""
        return episodes // config.rollout.rollouts * config.judge.m

    def reward_model(
        self,
        config: Config,
        arm: ArmConfig,
        run_seed: int,
        family: TaskFamily,
        chat_model: ChatModel | None,
        prompts: Prompts,
    ) -> RewardModel:
        """A language model or the environment's teacher writes tests. The family runs them."""
        from rlanything.rewards.unit_tests.oracle import OracleTests
        from rlanything.rewards.unit_tests.signals import TestSource, UnitTestModel
        from rlanything.rewards.unit_tests.writer import UnitTestWriter

        tests: TestSource
        if chat_model is None:
            tests = OracleTests(testing_teacher(family), config.judge_for(arm), config.judge.m)
        else:
            tests = UnitTestWriter(chat_model, prompts, config.judge, examiner(family))
        return UnitTestModel(config, arm, run_seed, tests)

    def stored_model(
        self, config: Config, arm: ArmConfig, run_seed: int, stored: StoredIteration
    ) -> RewardModel:
        """The tests that a run stored, and the results of programs on them."""
        from rlanything.rewards.unit_tests.records import FILE, StoredTests, UnitTestRecord
        from rlanything.rewards.unit_tests.signals import UnitTestModel

        return UnitTestModel(config, arm, run_seed, StoredTests(stored.read(FILE, UnitTestRecord.from_json)))

    def evaluation(
        self, config: Config, family: TaskFamily, chat_model: ChatModel, prompts: Prompts
    ) -> PanelEvaluation:
        """Shares of right tests and of tests that detect wrong programs, on programs whose verdicts are known."""
        from rlanything.rewards.unit_tests.evaluation import UnitTestEvaluation
        from rlanything.rewards.unit_tests.writer import UnitTestWriter

        return UnitTestEvaluation(
            config, family, UnitTestWriter(chat_model, prompts, config.judge, examiner(family))
        )

    def warm_start(self, config: Config, family: TaskFamily, prompts: Prompts) -> WarmStart:
        """Training on the teacher's tests, some of them wrong."""
        from rlanything.rewards.unit_tests.lessons import UnitTestLessons

        return UnitTestLessons(config, family, prompts)

    def records(self, groups: Sequence[Group]) -> dict[str, list[dict[str, Json]]]:
        """The tests of every task, under the name of their file."""
        from rlanything.rewards.unit_tests import records

        return records.unit_test_records(groups)

    def taught(self, group: Group) -> dict[tuple[int, ...], Lesson]:
        """What the tests of the group's task teach, under the key (): a group has one question."""
        from rlanything.rewards.unit_tests.writer import examined

        lesson = examined(group).lesson
        return {} if lesson is None else {(): lesson}

    def warnings(self, history: Sequence[Mapping[str, float | None]]) -> list[str]:
        """A warning about replies without a test."""
        from rlanything.rewards.unit_tests import metrics

        return metrics.warnings(history)
