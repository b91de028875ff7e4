"""What the reward model says about the rollouts of an iteration, and what follows from it: two kinds, one protocol.

`StepVotes`: m votes on every step (text games, GUI; paper, section 3.1). `UnitTests`: m unit tests for every task
(coding; paper, appendix C). The loop asks for nothing else, so the algorithm around them is one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from rlanything.core.types import ScoredJudgements, ScoredTrajectory
from rlanything.loop.critic import Remarks
from rlanything.loop.group import Group


class Feedback(Protocol):
    """One kind of reward model."""

    def judge(self, groups: Sequence[Group], iteration: int) -> list[Group]:
        """The groups with what the reward model says about them."""
        ...

    def policy_lessons(self, group: Group) -> list[ScoredTrajectory]:
        """The trajectories of a group with their advantages."""
        ...

    def reward_lessons(self, groups: Sequence[Group]) -> list[ScoredJudgements]:
        """What the reward model learns from groups that train it."""
        ...

    def remarks(self, group: Group) -> Remarks:
        """What is to be said about a group whose task is rewritten."""
        ...

    def objection(self, group: Group) -> str:
        """Why a rewritten task must not be accepted, whatever its accuracy, or ''."""
        ...

    def metrics(self, groups: Sequence[Group]) -> dict[str, float]:
        """The health of the reward model, by name; empty where it was not asked."""
        ...
