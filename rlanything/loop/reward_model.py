"""What the loop asks of a reward model. The implementations are in `rewards`, one folder for each kind."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from rlanything.core.types import ScoredReplies
from rlanything.loop.group import Group


@dataclass(frozen=True, slots=True)
class FailedStep:
    """A part of a failed rollout: a step, or a test that a program fails.

    number: its index in the rollout, or among the tests. wrong: whether votes mark it. reasons: given by these votes.
    """

    number: int
    text: str
    wrong: bool = False
    reasons: str = ""


@dataclass(frozen=True, slots=True)
class FailedRollout:
    """A rollout that failed, as a critic reads it. rollout: its index within the task. ending: how it ended."""

    rollout: int
    opening: str
    steps: tuple[FailedStep, ...]
    ending: str


@dataclass(frozen=True, slots=True)
class CriticInput:
    """The input of the critic for one task.

    extract: a criticism made without a model. failures: the failed rollouts, which a model summarises one by one.
    """

    extract: str
    failures: tuple[FailedRollout, ...]


class RewardModel(Protocol):
    """A reward model in the loop of one arm and seed. Groups are immutable: methods return new ones."""

    def judge(self, groups: Sequence[Group], iteration: int) -> list[Group]:
        """The groups with the reward model's judgements."""
        ...

    def score_episodes(self, group: Group) -> Group:
        """The group with the advantages that train the policy."""
        ...

    def score_replies(self, groups: Sequence[Group]) -> list[Group]:
        """The groups with the lessons for the reward model. Takes all groups at once, to balance weights over them."""
        ...

    def lessons(self, group: Group) -> list[ScoredReplies]:
        """The scored replies of a group that train the reward model, for the learner."""
        ...

    def critic_input(self, group: Group) -> CriticInput:
        """The input of the critic for a group whose task is to be rewritten."""
        ...

    def objection(self, group: Group) -> str:
        """Why a rewritten task must not be accepted, whatever its accuracy; '' for no objection."""
        ...

    def metrics(self, groups: Sequence[Group]) -> dict[str, float]:
        """Metrics of the reward model, by name; empty where the arm does not ask it."""
        ...
