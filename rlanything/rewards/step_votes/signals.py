"""Votes on steps in the loop: Eq. 1 for the policy, Eq. 2 for the reward model (paper, sections 2.1 and 2.2)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Protocol

from rlanything.config import ArmConfig, Config
from rlanything.core.signals import (
    balance_weights,
    integrated_rewards,
    policy_advantages,
    trajectory_advantages,
    vote_advantages,
)
from rlanything.core.types import Episode, Judgement, Lesson, ScoredReplies, Task, Trajectory
from rlanything.loop.group import Group, compared
from rlanything.loop.reward_model import CriticInput
from rlanything.rewards.step_votes.critic import critic_input
from rlanything.rewards.step_votes.metrics import force_metrics, vote_metrics


class VoteSource(Protocol):
    """Where votes come from: `judge.Judge`, `oracle.OracleVotes` or `records.StoredVotes`."""

    def judge(
        self, trajectories: Sequence[Trajectory], run_seed: int, iteration: int, *, tasks: Mapping[str, Task]
    ) -> list[tuple[Judgement, ...]]:
        """The judgements of every trajectory, one a step. tasks: the trajectories' tasks, by id."""
        ...


class StepVoteModel:
    """`RewardModel` that votes on every step."""

    def __init__(self, config: Config, arm: ArmConfig, run_seed: int, votes: VoteSource) -> None:
        self.config = config
        self.arm = arm
        self.run_seed = run_seed
        self.votes = votes

    def judge(self, groups: Sequence[Group], iteration: int) -> list[Group]:
        """The groups with m votes on every step; unchanged where the arm has no votes."""
        if not self.arm.step_votes:
            return list(groups)
        trajectories = [t for group in groups for t in group.trajectories]
        tasks = {group.task.task_id: group.task for group in groups}
        judgements = iter(self.votes.judge(trajectories, self.run_seed, iteration, tasks=tasks))
        return [
            replace(group, episodes=tuple(replace(e, judgements=next(judgements)) for e in group.episodes))
            for group in groups
        ]

    def score_episodes(self, group: Group) -> Group:
        """Advantages of the integrated rewards, compared at each step index among the episodes that reach it.

        With `advantage` = mixed: only where their outcomes differ. With trajectory: one advantage for all steps of an
        episode, from the outcomes (GRPO).
        """
        kept = {k: episode for k, episode in enumerate(group.episodes) if compared(episode)}
        if self.arm.advantage == "trajectory":
            one = trajectory_advantages([episode.trajectory.outcome for episode in kept.values()])
            rows = [[x] * len(e.trajectory.steps) for x, e in zip(one, kept.values(), strict=True)]
        else:
            weight = self.arm.lambda_of(self.config.signals)
            rewards = [self.rewards(episode, weight) for episode in kept.values()]
            outcomes = [episode.trajectory.outcome for episode in kept.values()]
            among = outcomes if self.arm.advantage == "mixed" else None
            rows = policy_advantages(rewards, self.config.signals.advantage_scale, among)
        return group.with_advantages({k: tuple(row) for k, row in zip(kept, rows, strict=True)})

    def score_replies(self, groups: Sequence[Group]) -> list[Group]:
        """Advantages of the consistency rewards. Weights can balance the steps of successes and of failures.

        They do with `signals.reward_balance` = outcome. Otherwise every weight is 1.
        """
        advantages = [[self._vote_advantages(e) for e in group.episodes] for group in groups]
        outcomes = [
            episode.trajectory.outcome
            for group, rows in zip(groups, advantages, strict=True)
            for episode, steps in zip(group.episodes, rows, strict=True)
            for step in steps
            if _trains(step)
        ]
        balanced = self.config.signals.reward_balance == "outcome"
        weights = iter(balance_weights(outcomes) if balanced else [1.0] * len(outcomes))
        return [
            replace(
                group,
                episodes=tuple(
                    replace(episode, lessons=_lessons(steps, weights))
                    for episode, steps in zip(group.episodes, rows, strict=True)
                ),
            )
            for group, rows in zip(groups, advantages, strict=True)
        ]

    def lessons(self, group: Group) -> list[ScoredReplies]:
        """One item for each episode with steps that train."""
        taught = [
            [(j, x) for j, x in zip(e.judgements, e.lessons, strict=True) if x is not None]
            for e in group.episodes
            if e.lessons
        ]
        return [ScoredReplies.of(pairs) for pairs in taught]

    def critic_input(self, group: Group) -> CriticInput:
        """The failed episodes, the steps that the votes call wrong, and the reasons given for them."""
        return critic_input(group, self.config.adaptation.marked)

    def objection(self, group: Group) -> str:
        """No objection: an environment refuses an unsolvable rewrite before it is rolled out."""
        return ""

    def metrics(self, groups: Sequence[Group]) -> dict[str, float]:
        """Metrics of the votes; where the reward model trains, also the ratio of Theorem 2's forces."""
        found = vote_metrics(groups, self.config.judge.m)
        if self.arm.train_reward and found:
            found |= force_metrics(groups, self.config.signals.consistency_lambda)
        return found

    def rewards(self, episode: Episode, lam: float) -> list[float]:
        """Eq. 1 for each step. Steps whose question did not fit the reward model's context have no votes."""
        trajectory = episode.trajectory
        votes: list[list[int | None]] = [[v.verdict for v in j.votes] for j in episode.judgements]
        votes += [[] for _ in range(len(trajectory.steps) - len(votes))]
        return integrated_rewards(trajectory.outcome, votes, lam, use_outcome=self.arm.outcome)

    def _vote_advantages(self, episode: Episode) -> list[tuple[float | None, ...]]:
        """Eq. 2 for each judgement, with R at `signals.consistency_lambda`; none for an episode that does not count."""
        if not episode.trajectory.counts:
            return []
        rewards = self.rewards(episode, self.config.signals.consistency_lambda)
        return [
            tuple(vote_advantages(reward, [v.verdict for v in judgement.votes]))
            for reward, judgement in zip(rewards, episode.judgements, strict=False)
        ]


def _trains(advantages: Sequence[float | None]) -> bool:
    return any(advantage is not None for advantage in advantages)


def _lessons(
    steps: Sequence[tuple[float | None, ...]], weights: Iterator[float]
) -> tuple[Lesson | None, ...]:
    """A lesson for each step that trains, with the next of the weights; empty where all weights are 0."""
    lessons = tuple(Lesson(step, next(weights)) if _trains(step) else None for step in steps)
    return lessons if any(lesson and lesson.weight for lesson in lessons) else ()
