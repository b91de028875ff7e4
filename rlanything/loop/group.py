"""The episodes of one task in one iteration."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from rlanything.core.signals import accuracy
from rlanything.core.types import Episode, Proposal, Task, Trajectory

CONTEXT_FULL = "the policy's context is full"
"""The error of an episode that was cut off before a step whose prompt does not fit."""


@dataclass(frozen=True)
class Group:
    """The episodes of one task in one iteration, with the reward model's findings about the task.

    proposal: set when the task is a rewrite q' and these episodes decide whether it is accepted.
    trains: whether the episodes may train the models. False for a rejected rewrite, and for a task that dynamic
    sampling replaced.
    findings: what the reward model found out about the task as a whole; None for nothing. Its type depends on the kind
    of reward model.
    """

    slot: int
    task: Task
    episodes: tuple[Episode, ...]
    proposal: Proposal | None = None
    trains: bool = True
    findings: object = None

    @property
    def trajectories(self) -> tuple[Trajectory, ...]:
        """The trajectories of the episodes."""
        return tuple(episode.trajectory for episode in self.episodes)

    @property
    def outcomes(self) -> list[int]:
        """Outcomes of the trajectories that count."""
        return [t.outcome for t in self.trajectories if t.counts]

    @property
    def accuracy(self) -> float | None:
        """acc(q); None when every rollout crashed. Then nothing is decided about the task."""
        return accuracy(self.outcomes) if self.outcomes else None

    @property
    def has_spread(self) -> bool:
        """Whether some rollouts of the task succeeded and some failed."""
        return len(set(self.outcomes)) > 1

    def within(self, low: float, high: float) -> bool:
        """Whether the accuracy is known and lies in [low, high]."""
        return self.accuracy is not None and low <= self.accuracy <= high

    def with_advantages(self, advantages: Mapping[int, tuple[float, ...]]) -> Group:
        """The group with advantages for the policy, by the index of the episode. Other episodes do not train it."""
        episodes = (replace(e, advantages=advantages.get(k)) for k, e in enumerate(self.episodes))
        return replace(self, episodes=tuple(episodes))


def compared(episode: Episode) -> bool:
    """Whether an episode is compared with the others of its task: its trajectory counts, and it has a step."""
    return episode.trajectory.counts and bool(episode.trajectory.steps)
