"""The rollouts of one task in one iteration, with what the reward model said about them."""

from __future__ import annotations

from dataclasses import dataclass

from rlanything.core.signals import accuracy
from rlanything.core.types import Judgement, Proposal, Task, Trajectory
from rlanything.loop.testwriter import Examined


@dataclass(frozen=True)
class Group:
    """`proposal`: the rollouts decide about q' instead of measuring a head. `judgements`: one tuple a trajectory.

    Of a reward model that votes on steps there are `judgements`, of one that writes tests there is `examined`.
    """

    slot: int
    task: Task
    trajectories: tuple[Trajectory, ...]
    judgements: tuple[tuple[Judgement, ...], ...] = ()
    proposal: Proposal | None = None
    trains: bool = True
    examined: Examined | None = None

    @property
    def outcomes(self) -> list[int]:
        """Outcomes of the trajectories that count."""
        return [t.outcome for t in self.trajectories if t.counts]

    @property
    def accuracy(self) -> float | None:
        """acc(q); None when every rollout crashed (there is no accuracy then, and nothing is decided)."""
        return accuracy(self.outcomes) if self.outcomes else None

    @property
    def alive(self) -> tuple[Trajectory, ...]:
        """The trajectories that count and in which something was done."""
        return tuple(t for t in self.trajectories if t.counts and t.steps)

    def within(self, low: float, high: float) -> bool:
        """Whether there is an accuracy, and it is from `low` to `high`."""
        return self.accuracy is not None and low <= self.accuracy <= high
