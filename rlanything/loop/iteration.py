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
from rlanything.core.adaptation import accepts, direction
from rlanything.core.timing import phase
from rlanything.core.types import (
    Direction,
    Episode,
    EventKind,
    Proposal,
    ScoredReplies,
    ScoredTrajectory,
    Task,
    Trajectory,
)
from rlanything.loop.adapt import Wanted
from rlanything.loop.batch import next_slots
from rlanything.loop.critic import Criticism, CriticRecord, critic_metrics
from rlanything.loop.group import Group
from rlanything.loop.metrics import iteration_metrics
from rlanything.loop.reward_model import CriticInput, RewardModel
from rlanything.loop.rollout import Assignment, Sampling


@dataclass(frozen=True)
class LoopState:
    """What an iteration leaves for the next one.

    iteration: the number of the next iteration. cursor: a position in the endless sequence of shuffled slot orders.
    pending: the proposals that the next iteration rolls out. tokens: how many tokens the policy and the reward model
    have sampled so far.
    """

    iteration: int
    buffer: TaskBuffer
    cursor: int = 0
    pending: tuple[Proposal, ...] = ()
    tokens: int = 0


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


class RolloutSource(Protocol):
    """Where episodes come from: `rollout.RolloutWorker`, or a stored run."""

    def roll_out(self, assignments: Sequence[Assignment], sampling: Sampling) -> list[Trajectory]:
        """All episodes of the assignments, in their order."""
        ...


class ProposalSource(Protocol):
    """Where rewritten tasks come from: `adapt.Adapter`, or a stored run."""

    def critics(
        self, tasks: Sequence[Task], inputs: Sequence[CriticInput], run_seed: int, iteration: int
    ) -> list[Criticism]:
        """What the critic says about each task."""
        ...

    def propose(
        self, wanted: Sequence[Wanted], buffer: TaskBuffer, run_seed: int, iteration: int
    ) -> list[Proposal]:
        """One proposal for every wanted rewrite."""
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

    def collect(self, state: LoopState) -> IterationResult:
        """Alg. 1, lines 3-21 (Alg. 2, lines 4-42), for `state.iteration`, without the two updates."""
        groups, cursor = self._roll_out_batch(state)
        with phase("judge"):
            groups = self.reward_model.judge(groups, state.iteration)
        decided = [self._decide(g, groups, state.iteration) for g in groups]
        groups = [g for g, _ in decided]
        events = [event for _, event in decided if event is not None]
        buffer = state.buffer.apply(events)
        pending, asked, critics = self._adapt(groups, buffer, state.iteration)
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
        metrics |= self.reward_model.metrics(groups)
        tokens = state.tokens + int(metrics["policy_tokens"] + metrics.get("reward_tokens", 0.0))
        following = LoopState(state.iteration + 1, buffer, cursor, pending, tokens)
        if self.arm.adapt and self.config.adaptation.critic == "model":
            metrics |= critic_metrics(critics)
        return IterationResult(
            tuple(groups), tuple(policy), tuple(reward), tuple(events), following, metrics, tuple(critics)
        )

    def _roll_out_batch(self, state: LoopState) -> tuple[list[Group], int]:
        """The episodes of this iteration's tasks, and the cursor after them.

        With dynamic sampling (`max_batches` above 1), a task whose outcomes are all equal does not train. Further tasks
        are rolled out in its place.
        """
        wanted, busy = self.config.rollout.tasks, {p.slot for p in state.pending}
        slots, cursor = next_slots(self.run_seed, state.buffer.slots, state.cursor, busy, wanted)
        groups = self._roll_out(state, slots, state.pending)
        if self.arm.max_batches == 1:
            return groups, cursor
        tried, groups = {*busy, *slots}, [_require_spread(g) for g in groups]
        for _ in range(1, self.arm.max_batches):
            missing = wanted - sum(g.trains and g.slot not in busy for g in groups)
            slots, cursor = next_slots(self.run_seed, state.buffer.slots, cursor, tried, missing)
            if not slots:
                break
            tried |= set(slots)
            groups += [_require_spread(g) for g in self._roll_out(state, slots, ())]
        return groups, cursor

    def _roll_out(self, state: LoopState, slots: Sequence[int], pending: Sequence[Proposal]) -> list[Group]:
        """The episodes of the chosen slots, then those of the pending proposals."""
        paired = self.config.adaptation.acceptance == "paired"
        heads = [*slots, *(p.slot for p in pending if paired)]
        n = self.config.rollout.rollouts
        work: list[tuple[Assignment, Proposal | None]] = [
            (Assignment(slot, state.buffer.head(slot), n), None) for slot in heads
        ]
        work += [(Assignment(p.slot, p.task, n), p) for p in pending if p.task is not None]
        sampling = Sampling(
            self.run_seed,
            "act",
            state.iteration,
            self.config.rollout.temperature,
            self.config.rollout.max_steps,
        )
        with phase("rollout"):
            played = [Episode(t) for t in self.rollouts.roll_out([a for a, _ in work], sampling)]
        return [
            Group(a.slot, a.task, tuple(played[k * n : (k + 1) * n]), proposal=proposal)
            for k, (a, proposal) in enumerate(work)
        ]

    def _decide(self, group: Group, groups: Sequence[Group], iteration: int) -> tuple[Group, Event | None]:
        """Accept or reject q'. The rollouts of a rejected q' are recorded, but they do not train."""
        proposal, after = group.proposal, group.accuracy
        if proposal is None:
            return group, None
        before = proposal.parent_accuracy
        if self.config.adaptation.acceptance == "paired":
            parent = next(g for g in groups if g.slot == group.slot and g.proposal is None)
            before = parent.accuracy if parent.accuracy is not None else before
        if after is None:
            event = self._event(proposal, EventKind.REJECTED, iteration, reason="every rollout crashed")
            return replace(group, trains=False), event
        reason = f"accuracy {after:.3f} is outside the acceptance band (before: {before:.3f})"
        if accepts(proposal.direction, before, after, self.config.adaptation.rule):
            reason = self.reward_model.objection(group)
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
        self, groups: Sequence[Group], buffer: TaskBuffer, iteration: int
    ) -> tuple[tuple[Proposal, ...], list[Event], list[CriticRecord]]:
        """The proposals that the next iteration rolls out, an event for each proposal, and what the critic said."""
        if not self.arm.adapt or self.proposals is None:
            return (), [], []
        decided = {group.slot for group in groups if group.proposal is not None}
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
            proposals = self.proposals.propose(asked, buffer, self.run_seed, iteration)
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


def _require_spread(group: Group) -> Group:
    """The group, which does not train if its outcomes are all equal. `_decide` handles the group of a rewrite."""
    return group if group.proposal is not None or group.has_spread else replace(group, trains=False)
