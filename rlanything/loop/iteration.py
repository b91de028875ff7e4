"""One iteration of Alg. 1, without the learning: choose tasks, act, judge, decide, adapt, score.

`Loop.collect` is a pure function of the state and of the weights of the three models. It returns what to learn from
and the state that the next iteration starts with. The caller publishes that state.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from rlanything.buffer import Event, TaskBuffer
from rlanything.config import ArmConfig, Config
from rlanything.core.adaptation import accepts, direction, outside_band
from rlanything.core.timing import phase
from rlanything.core.types import (
    Direction,
    EventKind,
    Proposal,
    ScoredReplies,
    ScoredTrajectory,
    Task,
)
from rlanything.loop.adapt import Wanted
from rlanything.loop.batch import Batch, Batches, LoopState, RolloutSource
from rlanything.loop.critic import Criticism, CriticRecord, critic_metrics
from rlanything.loop.group import Group
from rlanything.loop.metrics import iteration_metrics, staleness_metrics
from rlanything.loop.reward_model import CriticInput, RewardModel


@dataclass(frozen=True)
class IterationResult:
    """Everything that an iteration collected.

    policy, reward: what the two models learn from, taken from the groups. critics: what the critic said about the tasks
    to be rewritten. state: what the next iteration starts with.
    """

    groups: tuple[Group, ...]
    policy: tuple[ScoredTrajectory, ...]
    reward: tuple[ScoredReplies, ...]
    events: tuple[Event, ...]
    state: LoopState
    metrics: dict[str, float] = field(default_factory=dict)
    critics: tuple[CriticRecord, ...] = ()


class ProposalSource(Protocol):
    """Where rewritten tasks come from: `adapt.Adapter`, or a stored run."""

    def critics(
        self, tasks: Sequence[Task], inputs: Sequence[CriticInput], run_seed: int, iteration: int
    ) -> list[Criticism]:
        """What the critic says about each task."""
        ...

    def propose(
        self,
        wanted: Sequence[Wanted],
        buffer: TaskBuffer,
        run_seed: int,
        iteration: int,
        offered: Sequence[Proposal] = (),
    ) -> list[Proposal]:
        """One proposal for every wanted rewrite. offered: those of other slots that are not decided yet."""
        ...


class Loop:
    """The loop around the models, for one arm and one seed.

    `proposals` may be None where the arm does not adapt. `proposer` names the adapter in the buffer's events.
    """

    def __init__(
        self,
        config: Config,
        arm: ArmConfig,
        run_seed: int,
        rollouts: RolloutSource,
        reward_model: RewardModel,
        proposals: ProposalSource | None,
        proposer: str = "",
    ) -> None:
        self.config = config
        self.arm = arm
        self.run_seed = run_seed
        self.rollouts = rollouts
        self.reward_model = reward_model
        self.proposals = proposals
        self.proposer = proposer
        self.batches = Batches(config, arm, run_seed)

    def roll_out(self, state: LoopState) -> Batch:
        """The episodes of `state.iteration`, by the weights that the policy's engine has now."""
        return self.batches.of(state, self.rollouts)

    def begun(self, state: LoopState, batch: Batch) -> LoopState:
        """With `train.staleness` 1: what the batch after `batch`, that of `state`, depends on.

        It is known before `batch` is judged. What `collect` adds changes no slot, no task and no proposal of the batch
        after: a slot whose rewrite is on trial now is not in it.
        """
        tested = tuple(proposal.slot for proposal in state.pending)
        return replace(
            state,
            iteration=state.iteration + 1,
            cursor=batch.cursor,
            pending=state.later,
            later=(),
            tested=tested,
        )

    def collect(self, state: LoopState, batch: Batch | None = None) -> IterationResult:
        """Alg. 1, lines 3-21 (Alg. 2, lines 4-42), for `state.iteration`, without the two updates.

        batch: its episodes, where they were rolled out before. Raises `MachineError` for an episode that was sampled
        by weights of more than `train.staleness` iterations ago.
        """
        batch = batch or self.roll_out(state)
        staleness = staleness_metrics(batch.trajectories, state.iteration, self.config.train.staleness)
        with phase("judge"):
            groups = self.reward_model.judge(batch.groups, state.iteration)
        decided = [self._decide(g, groups, state.iteration) for g in groups]
        groups = [g for g, _ in decided]
        events = [event for _, event in decided if event is not None]
        buffer = state.buffer.apply(events)
        proposals, asked, critics = self._adapt(groups, buffer, state)
        events += asked
        buffer = buffer.apply(asked)
        groups = self._score_replies([self._score_episodes(group) for group in groups])
        policy = [
            ScoredTrajectory(episode.trajectory, episode.advantages)
            for group in groups
            for episode in group.episodes
            if episode.advantages is not None
        ]
        reward = [lesson for group in groups for lesson in self.reward_model.lessons(group)]
        metrics = iteration_metrics(self.config, groups, events, buffer, len(policy), reward)
        metrics |= self.reward_model.metrics(groups) | staleness
        tokens = state.tokens + int(metrics["policy_tokens"] + metrics.get("reward_tokens", 0.0))
        following = LoopState(state.iteration + 1, buffer, batch.cursor, proposals, tokens)
        if self.config.train.staleness:
            following = replace(self.begun(state, batch), buffer=buffer, tokens=tokens, later=proposals)
        if self.arm.adapt and self.config.adaptation.critic == "model":
            metrics |= critic_metrics(critics)
        return IterationResult(
            tuple(groups), tuple(policy), tuple(reward), tuple(events), following, metrics, tuple(critics)
        )

    def _decide(self, group: Group, groups: Sequence[Group], iteration: int) -> tuple[Group, Event | None]:
        """Accept or reject q'. The rollouts of a rejected q' are recorded, but they do not train."""
        proposal, after = group.proposal, group.accuracy
        if proposal is None:
            return group, None
        before: float | None = proposal.parent_accuracy
        if self.config.adaptation.acceptance == "paired":
            before = next(g.accuracy for g in groups if g.slot == group.slot and g.proposal is None)
        if after is None:
            reason = "every rollout crashed"
        elif before is None:
            reason = "every rollout of the task that it was to replace crashed"
        elif accepts(proposal.direction, before, after, self.config.adaptation.rule):
            reason = self.reward_model.objection(group)
        else:
            reason = outside_band(before, after)
        kind = EventKind.REJECTED if reason else EventKind.ACCEPTED
        event = self._event(proposal, kind, iteration, accuracy=after, parent_accuracy=before, reason=reason)
        return replace(group, trains=not reason), event

    def _event(
        self,
        proposal: Proposal,
        kind: EventKind,
        iteration: int,
        *,
        accuracy: float | None = None,
        parent_accuracy: float | None = None,
        reason: str = "",
    ) -> Event:
        """The buffer's event, with the name of the model that proposed the task."""
        return Event.of(
            proposal,
            kind,
            iteration,
            accuracy=accuracy,
            parent_accuracy=parent_accuracy,
            reason=reason,
            proposer=self.proposer,
        )

    def _adapt(
        self, groups: Sequence[Group], buffer: TaskBuffer, state: LoopState
    ) -> tuple[tuple[Proposal, ...], list[Event], list[CriticRecord]]:
        """The proposals that a later iteration rolls out, an event for each proposal, and what the critic said."""
        if not self.arm.adapt or self.proposals is None:
            return (), [], []
        iteration = state.iteration
        # A slot has one open proposal at most: what is on trial now, or will be, is not rewritten again.
        decided = {group.slot for group in groups if group.proposal is not None} | {
            p.slot for p in state.later
        }
        wanted: list[tuple[Group, Direction]] = []
        for group in groups:
            way = (
                direction(group.accuracy, self.config.adaptation.rule) if group.accuracy is not None else None
            )
            if way is not None and group.slot not in decided:
                wanted.append((group, way))
        inputs = [self.reward_model.critic_input(group) for group, _ in wanted]
        tasks = [buffer.head(group.slot) for group, _ in wanted]
        with phase("adapt"):
            found = self.proposals.critics(tasks, inputs, self.run_seed, iteration)
            critics = [
                CriticRecord(g.slot, g.task.task_id, criticism)
                for (g, _), criticism in zip(wanted, found, strict=True)
            ]
            asked = [
                (g.slot, way, g.accuracy or 0.0, criticism.text)
                for (g, way), criticism in zip(wanted, found, strict=True)
            ]
            proposals = self.proposals.propose(asked, buffer, self.run_seed, iteration, state.later)
        kinds = [EventKind.INVALID if p.task is None else EventKind.PROPOSED for p in proposals]
        events = [
            self._event(p, kind, iteration, reason=p.reason) for p, kind in zip(proposals, kinds, strict=True)
        ]
        return tuple(p for p in proposals if p.task is not None), events, critics

    def _score_episodes(self, group: Group) -> Group:
        """The group with the advantages of its episodes, if they train the policy.

        An episode whose advantages are all zero gets None: it does not train.
        """
        signals = self.config.signals
        if not (group.trains and self._passes(group, signals.policy_min, signals.policy_max)):
            return group
        scored = self.reward_model.score_episodes(group)
        episodes = [e if any(e.advantages or ()) else replace(e, advantages=None) for e in scored.episodes]
        return replace(scored, episodes=tuple(episodes))

    def _passes(self, group: Group, low: float, high: float) -> bool:
        """Whether the group passes a filter on its accuracy. An arm without outcomes has no such filter."""
        return not self.arm.outcome or group.within(low, high)

    def _score_replies(self, groups: Sequence[Group]) -> list[Group]:
        """The groups with what the reward model learns from those that may train it."""
        if not self.arm.train_reward:
            return list(groups)
        low, high = self.config.signals.reward_min, self.config.signals.reward_max
        train = [group.trains and self._passes(group, low, high) for group in groups]
        scored = iter(self.reward_model.score_replies([g for g, t in zip(groups, train, strict=True) if t]))
        return [next(scored) if t else group for group, t in zip(groups, train, strict=True)]
