"""One iteration of Alg. 1, without the learning: choose tasks, act, judge, score, accept, adapt.

`Loop.collect` is a pure function of (state, weights of the three models): it returns what to learn from and the
state that the next iteration starts with. Publishing that state is the caller's business.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from rlanything.buffer import Event, TaskBuffer
from rlanything.config import ArmConfig, Config
from rlanything.core.seeds import derive_seed
from rlanything.core.types import (
    Direction,
    EventKind,
    Proposal,
    ScoredJudgements,
    ScoredTrajectory,
    Task,
    Trajectory,
)
from rlanything.loop.adapt import Wanted, accepts, direction
from rlanything.loop.critic import Remarks
from rlanything.loop.feedback import Feedback
from rlanything.loop.group import Group
from rlanything.loop.metrics import iteration_metrics
from rlanything.loop.rollout import Assignment, Sampling


@dataclass(frozen=True)
class LoopState:
    """What an iteration leaves for the next one.

    `cursor` counts positions in the endless sequence of shuffled slot orders; `pending` are the proposals whose
    rollouts the next iteration makes.
    """

    iteration: int
    buffer: TaskBuffer
    cursor: int = 0
    pending: tuple[Proposal, ...] = ()


@dataclass(frozen=True)
class Harvest:
    """Everything an iteration collected."""

    groups: tuple[Group, ...]
    policy: tuple[ScoredTrajectory, ...]
    reward: tuple[ScoredJudgements, ...]
    events: tuple[Event, ...]
    state: LoopState
    metrics: dict[str, float] = field(default_factory=dict)


class Acts(Protocol):
    """Who makes the episodes: `rollout.Roller`, or what a run stored of them."""

    def run(self, assignments: Sequence[Assignment], sampling: Sampling) -> list[Trajectory]:
        """All episodes of the assignments, in their order."""
        ...


class Rewrites(Protocol):
    """Who rewrites tasks: `adapt.Adapter`, or what a run stored of it."""

    def critics(
        self, tasks: Sequence[Task], remarks: Sequence[Remarks], run_seed: int, iteration: int
    ) -> list[str]:
        """One critic a task."""
        ...

    def propose(
        self, wanted: Sequence[Wanted], buffer: TaskBuffer, run_seed: int, iteration: int
    ) -> list[Proposal]:
        """One proposal for every wanted rewrite."""
        ...


class Loop:
    """The dynamic system around the models, for one arm and one seed. `proposer` names the adapter in the record."""

    def __init__(
        self,
        config: Config,
        arm: ArmConfig,
        run_seed: int,
        roller: Acts,
        feedback: Feedback,
        adapter: Rewrites,
        proposer: str = "",
    ) -> None:
        self.config = config
        self.arm = arm
        self.run_seed = run_seed
        self.roller = roller
        self.feedback = feedback
        self.adapter = adapter
        self.proposer = proposer

    def collect(self, state: LoopState) -> Harvest:
        """Alg. 1, lines 3-14, for `state.iteration`."""
        slots, cursor = self._choose(state)
        groups = self._act(state, slots)
        decided = [self._decide(g, groups, state.iteration) for g in groups]
        groups = [g for g, _ in decided]
        events = [event for _, event in decided if event is not None]
        buffer = state.buffer.apply(events)
        pending, asked = self._adapt(groups, buffer, state.iteration)
        events += asked
        following = LoopState(state.iteration + 1, buffer.apply(asked), cursor, pending)
        policy = self._policy_lessons(groups)
        reward = self._reward_lessons(groups) if self.arm.train_reward else []
        metrics = iteration_metrics(self.config, groups, events, following.buffer, len(policy), reward)
        metrics |= self.feedback.metrics(groups)
        return Harvest(tuple(groups), tuple(policy), tuple(reward), tuple(events), following, metrics)

    def _choose(self, state: LoopState) -> tuple[list[int], int]:
        """The slots of this iteration: the next ones in shuffled order, those with a pending proposal left out."""
        busy = {p.slot for p in state.pending}
        slots: list[int] = []
        cursor = state.cursor
        count = len(state.buffer)
        while len(slots) < min(self.config.rollout.tasks, count - len(busy)):
            order = slot_order(self.run_seed, cursor // count, state.buffer.slots)
            slot = order[cursor % count]
            cursor += 1
            if slot not in busy and slot not in slots:
                slots.append(slot)
        return slots, cursor

    def _act(self, state: LoopState, slots: Sequence[int]) -> list[Group]:
        paired = self.config.adaptation.acceptance == "paired"
        heads = [*slots, *(p.slot for p in state.pending if paired)]
        n = self.config.rollout.rollouts
        work: list[tuple[Assignment, Proposal | None]] = [
            (Assignment(slot, state.buffer.head(slot), n), None) for slot in heads
        ]
        work += [(Assignment(p.slot, p.task, n), p) for p in state.pending if p.task is not None]
        sampling = Sampling(
            self.run_seed,
            "act",
            state.iteration,
            self.config.rollout.temperature,
            self.config.rollout.max_steps,
        )
        played = self.roller.run([a for a, _ in work], sampling)
        groups = [
            Group(a.slot, a.task, tuple(played[k * n : (k + 1) * n]), proposal=proposal)
            for k, (a, proposal) in enumerate(work)
        ]
        return self.feedback.judge(groups, state.iteration)

    def _decide(self, group: Group, groups: Sequence[Group], iteration: int) -> tuple[Group, Event | None]:
        """Accept or reject q'; rejected rollouts are recorded but do not train."""
        proposal, after = group.proposal, group.accuracy
        if proposal is None:
            return group, None
        before = proposal.parent_accuracy
        if self.config.adaptation.acceptance == "paired":
            parent = next(g for g in groups if g.slot == group.slot and g.proposal is None)
            before = parent.accuracy if parent.accuracy is not None else before
        if after is None:
            event = self._event(proposal, EventKind.REJECTED, iteration, reason="every rollout crashed")
            return _untrained(group), event
        reason = f"accuracy {after:.3f} is outside the acceptance band (before: {before:.3f})"
        if accepts(proposal.direction, before, after, self.config.adaptation):
            reason = self.feedback.objection(group)
        kind = EventKind.REJECTED if reason else EventKind.ACCEPTED
        event = self._event(proposal, kind, iteration, accuracy=after, parent_accuracy=before, reason=reason)
        return (_untrained(group) if reason else group), event

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
    ) -> tuple[tuple[Proposal, ...], list[Event]]:
        if not self.arm.adapt:
            return (), []
        decided = {group.slot for group in groups if group.proposal is not None}
        wanted: list[tuple[Group, Direction]] = []
        for group in groups:
            way = direction(group.accuracy, self.config.adaptation) if group.accuracy is not None else None
            if way is not None and group.slot not in decided:
                wanted.append((group, way))
        remarks = [self.feedback.remarks(group) for group, _ in wanted]
        tasks = [buffer.head(group.slot) for group, _ in wanted]
        critics = self.adapter.critics(tasks, remarks, self.run_seed, iteration)
        asked = [(g.slot, way, g.accuracy or 0.0, c) for (g, way), c in zip(wanted, critics, strict=True)]
        proposals = self.adapter.propose(asked, buffer, self.run_seed, iteration)
        kinds = [EventKind.INVALID if p.task is None else EventKind.PROPOSED for p in proposals]
        events = [
            self._event(p, kind, iteration, reason=p.reason) for p, kind in zip(proposals, kinds, strict=True)
        ]
        return tuple(p for p in proposals if p.task is not None), events

    def _policy_lessons(self, groups: Sequence[Group]) -> list[ScoredTrajectory]:
        signals = self.config.signals
        return [
            lesson
            for group in groups
            if group.trains and group.within(signals.policy_min, signals.policy_max)
            for lesson in self.feedback.policy_lessons(group)
            if any(lesson.advantages)
        ]

    def _reward_lessons(self, groups: Sequence[Group]) -> list[ScoredJudgements]:
        signals = self.config.signals
        return self.feedback.reward_lessons(
            [g for g in groups if g.trains and g.within(signals.reward_min, signals.reward_max)]
        )


def slot_order(run_seed: int, epoch: int, slots: Sequence[int]) -> list[int]:
    """The order in which epoch `epoch` visits the slots; independent of the order they are given in."""
    return sorted(slots, key=lambda slot: derive_seed(run_seed, "order", epoch, slot))


def _untrained(group: Group) -> Group:
    return replace(group, trains=False)
