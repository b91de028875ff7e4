"""Feedback as votes on steps: Eq. 1 for the policy, Eq. 2 for the reward model (paper, section 3.1)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from typing import Protocol

from rlanything.config import ArmConfig, Config
from rlanything.core.signals import balance_weights, integrated_rewards, policy_advantages, vote_advantages
from rlanything.core.types import Judgement, ScoredJudgements, ScoredTrajectory, Trajectory
from rlanything.loop.critic import Remarks, marked_steps
from rlanything.loop.group import Group
from rlanything.loop.metrics import vote_metrics


class Judges(Protocol):
    """Who gives the votes: `judge.Judge`, or what a run stored of them."""

    def run(
        self, trajectories: Sequence[Trajectory], run_seed: int, iteration: int
    ) -> list[tuple[Judgement, ...]]:
        """The judgements of every trajectory, one a step."""
        ...


class StepVotes:
    """`Feedback` of a reward model that votes on every step."""

    def __init__(self, config: Config, arm: ArmConfig, run_seed: int, judge: Judges) -> None:
        self.config = config
        self.arm = arm
        self.run_seed = run_seed
        self.judges = judge

    def judge(self, groups: Sequence[Group], iteration: int) -> list[Group]:
        """The groups with m votes on every step, where the arm has votes."""
        trajectories = [t for group in groups for t in group.trajectories]
        found: list[tuple[Judgement, ...]] = [()] * len(trajectories)
        if self.arm.step_votes:
            found = self.judges.run(trajectories, self.run_seed, iteration)
        supply = iter(found)
        return [replace(g, judgements=tuple(next(supply) for _ in g.trajectories)) for g in groups]

    def policy_lessons(self, group: Group) -> list[ScoredTrajectory]:
        """Advantages of the integrated rewards, over the trajectories that are alive at a step."""
        judged = dict(zip(map(id, group.trajectories), group.judgements, strict=True))
        rewards = [self._rewards(t, judged[id(t)]) for t in group.alive]
        rows = policy_advantages(rewards, self.config.signals.advantage_scale)
        return [ScoredTrajectory(t, tuple(row)) for t, row in zip(group.alive, rows, strict=True)]

    def reward_lessons(self, groups: Sequence[Group]) -> list[ScoredJudgements]:
        """Advantages of the consistency rewards, with weights that balance steps of successes and of failures."""
        kept = [
            (t, j)
            for g in groups
            for t, j in zip(g.trajectories, g.judgements, strict=True)
            if t.counts and j
        ]
        scored = [
            [
                tuple(vote_advantages(r, [v.verdict for v in step.votes]))
                for r, step in zip(self._rewards(t, j), j, strict=False)
            ]
            for t, j in kept
        ]
        owners = [
            t.outcome for (t, _), rows in zip(kept, scored, strict=True) for row in rows if _trains(row)
        ]
        balanced = self.config.signals.reward_balance == "outcome"
        weights = balance_weights(owners) if balanced else [1.0] * len(owners)
        return _lessons(kept, scored, weights)

    def remarks(self, group: Group) -> Remarks:
        """The steps that every vote calls wrong, with the reasons given."""
        pairs = zip(group.trajectories, group.judgements, strict=True)
        return Remarks.of([step for t, judgements in pairs for step in marked_steps(t, judgements)])

    def objection(self, group: Group) -> str:
        """None: whether a text game can be solved was seen before a rollout was spent."""
        return ""

    def metrics(self, groups: Sequence[Group]) -> dict[str, float]:
        """p+, p-, mu and what follows from them."""
        return vote_metrics(groups, self.config.judge.m)

    def _rewards(self, trajectory: Trajectory, judgements: Sequence[Judgement]) -> list[float]:
        """Eq. 1 per step. Steps whose question did not fit the RM's context have no votes."""
        votes: list[list[int | None]] = [[v.verdict for v in j.votes] for j in judgements]
        votes += [[] for _ in range(len(trajectory.steps) - len(votes))]
        return integrated_rewards(
            trajectory.outcome, votes, self.config.signals.lambda_, use_outcome=self.arm.outcome
        )


def _trains(row: Sequence[float | None]) -> bool:
    return any(a is not None for a in row)


def _lessons(
    kept: Sequence[tuple[Trajectory, tuple[Judgement, ...]]],
    scored: Sequence[Sequence[tuple[float | None, ...]]],
    weights: Sequence[float],
) -> list[ScoredJudgements]:
    """Lessons with the steps that train nothing left out, and their weights handed out in order."""
    supply = iter(weights)
    grouped: dict[int, list[tuple[Judgement, tuple[float | None, ...], float]]] = defaultdict(list)
    for k, ((_, judgements), rows) in enumerate(zip(kept, scored, strict=True)):
        for judgement, row in zip(judgements, rows, strict=False):
            if _trains(row):
                grouped[k].append((judgement, row, next(supply)))
    lessons = [
        ScoredJudgements(tuple(s[0] for s in steps), tuple(s[1] for s in steps), tuple(s[2] for s in steps))
        for steps in grouped.values()
    ]
    return [lesson for lesson in lessons if any(lesson.weights)]
