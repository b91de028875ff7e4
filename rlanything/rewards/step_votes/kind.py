"""Votes on steps, as a kind of reward model (`rewards.kind.RewardKind`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from rlanything.config import ORACLE, ArmConfig, Config
from rlanything.core.errors import ConfigError
from rlanything.core.protocols import TaskFamily, Teacher
from rlanything.core.types import Json, Lesson
from rlanything.core.unittests import Examiner
from rlanything.rewards.protocols import PanelEvaluation, Replies, StoredIteration, WarmStart
from rlanything.rewards.requirements import labeller

if TYPE_CHECKING:
    from rlanything.loop.chat_model import ChatModel
    from rlanything.loop.group import Group
    from rlanything.loop.prompts import Prompts
    from rlanything.loop.reward_model import RewardModel


class StepVotes:
    """m votes on every step of every episode."""

    replies = Replies(
        unit="votes a step",
        panel="judged trajectories",
        content="verdict",
        invalid="invalid_votes",
        settings="model.verdict_format, the judge template and judge.max_tokens",
    )

    def check(self, config: Config, family: TaskFamily) -> None:
        """Raise `ConfigError` for a family whose reward model writes tests, or that lacks a configured oracle."""
        if isinstance(family, Examiner):
            raise ConfigError(
                f"judge.writes = 'votes': the reward model of {type(family).__name__} writes tests. An environment and "
                "a scale that go together have a file in experiments/setting/"
            )
        if config.has_oracle:
            labeller(family)
        if config.evaluate.labels == ORACLE and not isinstance(family, Teacher):
            raise ConfigError(
                f"evaluate.labels = 'oracle': {type(family).__name__} has no oracle (the methods of Teacher). Let "
                "judges label the steps: evaluate.labels = judge, evaluate.judges.<name>.path = a checkpoint"
            )

    def count_replies(self, config: Config, episodes: int) -> int:
        """m for each step."""
        return episodes * config.rollout.max_steps * config.judge.m

    def reward_model(
        self,
        config: Config,
        arm: ArmConfig,
        run_seed: int,
        family: TaskFamily,
        chat_model: ChatModel | None,
        prompts: Prompts,
    ) -> RewardModel:
        """A language model that votes, or the environment's oracle."""
        from rlanything.rewards.step_votes.judge import Judge
        from rlanything.rewards.step_votes.oracle import OracleVotes
        from rlanything.rewards.step_votes.signals import StepVoteModel, VoteSource

        votes: VoteSource
        if chat_model is None:
            votes = OracleVotes(labeller(family), config.judge_for(arm), config.judge.m)
        else:
            votes = Judge(chat_model, prompts, config.judge)
        return StepVoteModel(config, arm, run_seed, votes)

    def stored_model(
        self, config: Config, arm: ArmConfig, run_seed: int, stored: StoredIteration
    ) -> RewardModel:
        """The votes that a run stored."""
        from rlanything.rewards.step_votes.records import StoredVotes
        from rlanything.rewards.step_votes.signals import StepVoteModel

        return StepVoteModel(config, arm, run_seed, StoredVotes(stored.episodes))

    def evaluation(
        self, config: Config, family: TaskFamily, chat_model: ChatModel, prompts: Prompts
    ) -> PanelEvaluation:
        """Majority verdicts against the oracle's labels and against the outcomes."""
        from rlanything.rewards.step_votes.evaluation import VoteEvaluation
        from rlanything.rewards.step_votes.judge import Judge

        return VoteEvaluation(config, family, Judge(chat_model, prompts, config.judge))

    def warm_start(self, config: Config, family: TaskFamily, prompts: Prompts) -> WarmStart:
        """Training on rollouts of the base policy with noisy labels."""
        from rlanything.rewards.step_votes.lessons import VoteLessons

        return VoteLessons(config, family, prompts)

    def records(self, groups: Sequence[Group]) -> dict[str, list[dict[str, Json]]]:
        """None: votes are stored with their episodes."""
        return {}

    def taught(self, group: Group) -> dict[tuple[int, ...], Lesson]:
        """What the votes on a step teach, by the indices (episode, step)."""
        return {
            (number, step): lesson
            for number, episode in enumerate(group.episodes)
            for step, lesson in enumerate(episode.lessons)
            if lesson is not None
        }

    def warnings(self, history: Sequence[Mapping[str, float | None]]) -> list[str]:
        """Warnings about votes without information, and about replies without a verdict."""
        from rlanything.rewards.step_votes import metrics

        return metrics.warnings(history)
