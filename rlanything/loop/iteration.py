"""One iteration of Alg. 1, without the learning: choose tasks, act, judge, score, accept, adapt.

`Loop.collect` is a pure function of (state, weights of the three models): it returns what to learn from and the
state that the next iteration starts with. Publishing that state is the caller's business.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from rlanything.buffer import Event, TaskBuffer
from rlanything.config import ArmConfig, Config
from rlanything.core.seeds import derive_seed
from rlanything.core.signals import (
    accuracy,
    balance_weights,
    integrated_rewards,
    policy_advantages,
    vote_advantages,
)
from rlanything.core.types import (
    Direction,
    EventKind,
    Judgement,
    Proposal,
    ScoredJudgements,
    ScoredTrajectory,
    Task,
    Trajectory,
)
from rlanything.loop.adapt import Wanted, accepts, direction, marked_steps
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
class Group:
    """The rollouts of one task in one iteration. `proposal`: they decide about q' instead of measuring a head."""

    slot: int
    trajectories: tuple[Trajectory, ...]
    judgements: tuple[tuple[Judgement, ...], ...]
    proposal: Proposal | None = None
    trains: bool = True

    @property
    def outcomes(self) -> list[int]:
        """Outcomes of the trajectories that count."""
        return [t.outcome for t in self.trajectories if t.counts]

    @property
    def accuracy(self) -> float | None:
        """acc(q); None when every rollout crashed (there is no accuracy then, and nothing is decided)."""
        return accuracy(self.outcomes) if self.outcomes else None


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


class Judges(Protocol):
    """Who gives the votes: `judge.Judge`, or what a run stored of them."""

    def run(
        self, trajectories: Sequence[Trajectory], run_seed: int, iteration: int
    ) -> list[tuple[Judgement, ...]]:
        """The judgements of every trajectory, one a step."""
        ...


class Rewrites(Protocol):
    """Who rewrites tasks: `adapt.Adapter`, or what a run stored of it."""

    def critics(
        self,
        tasks: Sequence[Task],
        marked: Sequence[Sequence[tuple[str, str]]],
        run_seed: int,
        iteration: int,
    ) -> list[str]:
        """One critic summary a task."""
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
        judge: Judges,
        adapter: Rewrites,
        proposer: str = "",
    ) -> None:
        self.config = config
        self.arm = arm
        self.run_seed = run_seed
        self.roller = roller
        self.judge = judge
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
        trajectories = self.roller.run([a for a, _ in work], sampling)
        judgements: list[tuple[Judgement, ...]] = [()] * len(trajectories)
        if self.arm.step_votes:
            judgements = self.judge.run(trajectories, self.run_seed, state.iteration)
        return [
            Group(
                a.slot,
                tuple(trajectories[k * n : (k + 1) * n]),
                tuple(judgements[k * n : (k + 1) * n]),
                proposal,
            )
            for k, (a, proposal) in enumerate(work)
        ]

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
        accepted = accepts(proposal.direction, before, after, self.config.adaptation)
        kind = EventKind.ACCEPTED if accepted else EventKind.REJECTED
        reason = (
            "" if accepted else f"accuracy {after:.3f} is outside the acceptance band (before: {before:.3f})"
        )
        event = self._event(proposal, kind, iteration, accuracy=after, parent_accuracy=before, reason=reason)
        return (group if accepted else _untrained(group)), event

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
        marked = [_marked(group) for group, _ in wanted]
        tasks = [buffer.head(group.slot) for group, _ in wanted]
        critics = self.adapter.critics(tasks, marked, self.run_seed, iteration)
        asked = [(g.slot, way, g.accuracy or 0.0, c) for (g, way), c in zip(wanted, critics, strict=True)]
        proposals = self.adapter.propose(asked, buffer, self.run_seed, iteration)
        kinds = [EventKind.INVALID if p.task is None else EventKind.PROPOSED for p in proposals]
        events = [
            self._event(p, kind, iteration, reason=p.reason) for p, kind in zip(proposals, kinds, strict=True)
        ]
        return tuple(p for p in proposals if p.task is not None), events

    def _policy_lessons(self, groups: Sequence[Group]) -> list[ScoredTrajectory]:
        signals = self.config.signals
        lessons = []
        for group in groups:
            acc = group.accuracy
            if not group.trains or acc is None or not signals.policy_min <= acc <= signals.policy_max:
                continue
            alive = [t for t in group.trajectories if t.counts and t.steps]
            rewards = [
                self._rewards(t, j)
                for t, j in zip(group.trajectories, group.judgements, strict=True)
                if t in alive
            ]
            for trajectory, row in zip(
                alive, policy_advantages(rewards, signals.advantage_scale), strict=True
            ):
                if any(row):
                    lessons.append(ScoredTrajectory(trajectory, tuple(row)))
        return lessons

    def _reward_lessons(self, groups: Sequence[Group]) -> list[ScoredJudgements]:
        signals = self.config.signals
        kept = [
            (t, j)
            for g in groups
            if g.trains and g.accuracy is not None and signals.reward_min <= g.accuracy <= signals.reward_max
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
        weights = balance_weights(owners) if signals.reward_balance == "outcome" else [1.0] * len(owners)
        return _lessons(kept, scored, weights)

    def _rewards(self, trajectory: Trajectory, judgements: Sequence[Judgement]) -> list[float]:
        """Eq. 1 per step. Steps whose question did not fit the RM's context have no votes."""
        votes: list[list[int | None]] = [[v.verdict for v in j.votes] for j in judgements]
        votes += [[] for _ in range(len(trajectory.steps) - len(votes))]
        return integrated_rewards(
            trajectory.outcome, votes, self.config.signals.lambda_, use_outcome=self.arm.outcome
        )


def slot_order(run_seed: int, epoch: int, slots: Sequence[int]) -> list[int]:
    """The order in which epoch `epoch` visits the slots; independent of the order they are given in."""
    return sorted(slots, key=lambda slot: derive_seed(run_seed, "order", epoch, slot))


def _untrained(group: Group) -> Group:
    return Group(group.slot, group.trajectories, group.judgements, group.proposal, trains=False)


def _marked(group: Group) -> list[tuple[str, str]]:
    pairs = zip(group.trajectories, group.judgements, strict=True)
    return [step for t, judgements in pairs for step in marked_steps(t, judgements)]


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
