"""The kinds of reward models. Only this module chooses the implementation by `judge.writes`.

`config` and `report` are below this room. They read `judge.writes` themselves, each for a rule or table of their own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

from rlanything.config import ArmConfig, Config, JudgeConfig
from rlanything.core.protocols import TaskFamily
from rlanything.core.types import Json, Lesson
from rlanything.rewards.protocols import PanelEvaluation, Replies, StoredIteration, WarmStart
from rlanything.rewards.step_votes.kind import StepVotes
from rlanything.rewards.unit_tests.kind import UnitTests

if TYPE_CHECKING:
    from rlanything.loop.chat_model import ChatModel
    from rlanything.loop.group import Group
    from rlanything.loop.prompts import Prompts
    from rlanything.loop.reward_model import RewardModel


class RewardKind(Protocol):
    """One kind of reward model. Its methods import what they need, so that the dry run stays fast."""

    replies: Replies

    def check(self, config: Config, family: TaskFamily) -> None:
        """Raise `ConfigError` for a family that does not fit this kind, or cannot do what is configured."""
        ...

    def count_replies(self, config: Config, episodes: int) -> int:
        """The most replies needed to judge this many episodes."""
        ...

    def reward_model(
        self,
        config: Config,
        arm: ArmConfig,
        run_seed: int,
        family: TaskFamily,
        chat_model: ChatModel | None,
        prompts: Prompts,
    ) -> RewardModel:
        """A reward model for the loop. chat_model: the language model that it asks; None: it asks the oracle."""
        ...

    def stored_model(
        self, config: Config, arm: ArmConfig, run_seed: int, stored: StoredIteration
    ) -> RewardModel:
        """A reward model for a replay, on top of what a run stored. It raises `NotStored` for what is not stored."""
        ...

    def evaluation(
        self, config: Config, family: TaskFamily, chat_model: ChatModel, prompts: Prompts
    ) -> PanelEvaluation:
        """How the reward model is measured on a panel, with `judge.m` replies to each question."""
        ...

    def warm_start(self, config: Config, family: TaskFamily, prompts: Prompts) -> WarmStart:
        """What the first reward model is taught. Raises `ConfigError` for a family that cannot teach it."""
        ...

    def records(self, groups: Sequence[Group]) -> dict[str, list[dict[str, Json]]]:
        """What a run stores of an iteration in addition to its episodes: name of the file -> lines."""
        ...

    def taught(self, group: Group) -> dict[tuple[int, ...], Lesson]:
        """What each question about a group teaches the reward model, by the question's place in the group."""
        ...

    def warnings(self, history: Sequence[Mapping[str, float | None]]) -> list[str]:
        """Messages about problems of the reward model, from the metrics of the iterations so far."""
        ...


KINDS: dict[str, RewardKind] = {"votes": StepVotes(), "tests": UnitTests()}


def kind_of(config: Config) -> RewardKind:
    """The kind that the configuration names."""
    return KINDS[name_of(config)]


class Judged(Protocol):
    """A configuration, or a part of it that says how steps are judged."""

    @property
    def judge(self) -> JudgeConfig:
        """The section `judge`."""
        ...


def name_of(config: Judged) -> str:
    """The name of that kind: a key of `KINDS`."""
    return config.judge.writes
