"""The two kinds of reward models, as the stages meet them: `judge.writes` chooses between votes and unit tests.

Each kind knows its feedback in the loop, and how it is measured on the reward panel that `bootstrap` wrote.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from rlanything.config import ArmConfig, Config
from rlanything.core.coding_signals import CodingCounts
from rlanything.core.types import Json, TaskFamily
from rlanything.loop.feedback import Feedback
from rlanything.loop.judge import Judge
from rlanything.loop.panel import LabelledTrajectory, measure_reward, outcome_accuracy, process_accuracy
from rlanything.loop.prompts import Prompts
from rlanything.loop.speaker import Speaker
from rlanything.loop.stepvotes import StepVotes
from rlanything.loop.testfeedback import UnitTests
from rlanything.loop.testpanel import PanelProblem, measure_tests
from rlanything.loop.testwriter import UnitTestWriter
from rlanything.stages import build

Records = Sequence[Mapping[str, Json]]
"""Lines of the reward panel."""


class RewardKind(Protocol):
    """What the stages ask of a reward model."""

    def feedback(self, arm: ArmConfig, run_seed: int) -> Feedback:
        """Its part in the loop."""
        ...

    def curve(self, panel: Records, most: int, run_seed: int) -> dict[str, float]:
        """Points of the learning curve, on the first `most` lines of the panel."""
        ...

    def results(self, panel: Records, run_seed: int) -> dict[str, Any]:
        """Raw results on the panel, as evaluation/<arm>.json holds them."""
        ...


class Votes:
    """A reward model that votes on steps."""

    def __init__(self, config: Config, judge: Judge) -> None:
        self.config = config
        self.judge = judge

    def feedback(self, arm: ArmConfig, run_seed: int) -> Feedback:
        """m votes on every step."""
        return StepVotes(self.config, arm, run_seed, self.judge)

    def curve(self, panel: Records, most: int, run_seed: int) -> dict[str, float]:
        """Agreement with the oracle, and with the outcomes."""
        scores = measure_reward(self.judge, [LabelledTrajectory.from_json(r) for r in panel[:most]], run_seed)
        return {"panel/rm_process": process_accuracy(scores), "panel/rm_outcome": outcome_accuracy(scores)}

    def results(self, panel: Records, run_seed: int) -> dict[str, Any]:
        """Steps judged rightly, by task."""
        scores = measure_reward(self.judge, [LabelledTrajectory.from_json(r) for r in panel], run_seed)
        return {
            "rm_process": {task: {"good": list(s.good), "bad": list(s.bad)} for task, s in scores.items()},
            "rm_outcome": {task: list(s.outcome) for task, s in scores.items()},
        }


class Tests:
    """A reward model that writes unit tests."""

    def __init__(self, config: Config, writer: UnitTestWriter) -> None:
        self.config = config
        self.writer = writer

    def feedback(self, arm: ArmConfig, run_seed: int) -> Feedback:
        """m tests for every task."""
        return UnitTests(self.config, arm, run_seed, self.writer)

    def curve(self, panel: Records, most: int, run_seed: int) -> dict[str, float]:
        """Shares of right and of telling tests."""
        found = measure_tests(self.writer, [PanelProblem.from_json(r) for r in panel[:most]], run_seed)
        rates = sum(found.values(), CodingCounts()).rates
        return {"panel/ut": rates["ut"], "panel/detect": rates["detect"]}

    def results(self, panel: Records, run_seed: int) -> dict[str, Any]:
        """Right and telling tests, by task."""
        found = measure_tests(self.writer, [PanelProblem.from_json(r) for r in panel], run_seed)
        return {
            "ut": {task: [c.ut, c.ut_of] for task, c in found.items()},
            "detect": {task: [c.detect, c.detect_of] for task, c in found.items()},
        }


def reward_kind(
    config: Config, family: TaskFamily, reward: Speaker, prompts: Prompts, *, m: int | None = None
) -> RewardKind:
    """The kind that the configuration names; `m`: how many votes or tests, where not `judge.m`."""
    judge = config.judge if m is None else config.judge.model_copy(update={"m": m})
    if judge.writes == "votes":
        return Votes(config, Judge(reward, prompts, judge))
    return Tests(config, UnitTestWriter(reward, prompts, judge, build.examiner(family)))
