"""The batch of an iteration: which tasks it rolls out, and their episodes.

Slots are the next ones of an endless sequence of shuffled orders of all slots.
"""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import dataclass, replace
from typing import Protocol

from rlanything.buffer import TaskBuffer
from rlanything.config import ArmConfig, Config
from rlanything.core.seeds import derive_seed
from rlanything.core.timing import phase
from rlanything.core.types import Episode, Proposal, Trajectory
from rlanything.loop.group import Group
from rlanything.loop.rollout import Assignment, Sampling


@dataclass(frozen=True)
class LoopState:
    """What an iteration leaves for the next one.

    iteration: the number of the next iteration. cursor: a position in the endless sequence of shuffled slot orders.
    pending: the proposals that the next iteration rolls out. tokens: how many tokens the policy and the reward model
    have sampled so far.

    With `train.staleness` 1, the batch of the next iteration was begun before the last one was judged. later: the
    proposals that came out of the last one, which the iteration after the next rolls out. tested: the slots whose
    rewrite was on trial in the last one, so that the next one leaves them out.
    """

    iteration: int
    buffer: TaskBuffer
    cursor: int = 0
    pending: tuple[Proposal, ...] = ()
    tokens: int = 0
    later: tuple[Proposal, ...] = ()
    tested: tuple[int, ...] = ()

    @property
    def busy(self) -> set[int]:
        """The slots that the next iteration does not choose."""
        return {*(proposal.slot for proposal in self.pending), *self.tested}


@dataclass(frozen=True)
class Batch:
    """The episodes of an iteration, not judged yet. cursor: the position after its slots."""

    groups: tuple[Group, ...]
    cursor: int

    @property
    def trajectories(self) -> list[Trajectory]:
        """All of them, in their order."""
        return [trajectory for group in self.groups for trajectory in group.trajectories]


class RolloutSource(Protocol):
    """Where episodes come from: `rollout.RolloutWorker`, or a stored run."""

    def roll_out(self, assignments: Sequence[Assignment], sampling: Sampling) -> list[Trajectory]:
        """All episodes of the assignments, in their order."""
        ...


@dataclass
class RolledOut:
    """A source of episodes that were rolled out before, in the same order."""

    left: list[Trajectory]

    def roll_out(self, assignments: Sequence[Assignment], sampling: Sampling) -> list[Trajectory]:
        """See `RolloutSource`. Raises `ValueError` where the next episodes are of other tasks."""
        asked = [(a.slot, a.task.task_id, number) for a in assignments for number in range(a.rollouts)]
        found, self.left = self.left[: len(asked)], self.left[len(asked) :]
        if [(t.slot, t.task_id, t.rollout) for t in found] != asked:
            raise ValueError(f"the episodes of iteration {sampling.iteration} are of other tasks")
        return found


class Batches:
    """Chooses the tasks of an iteration and has them rolled out."""

    def __init__(self, config: Config, arm: ArmConfig, run_seed: int) -> None:
        self._config, self._arm, self._run_seed = config, arm, run_seed

    def of(self, state: LoopState, source: RolloutSource) -> Batch:
        """The batch of `state.iteration`: that of the next slots, and of the pending proposals.

        With dynamic sampling (`max_batches` above 1), a task whose outcomes are all equal does not train. Further tasks
        are rolled out in its place.
        """
        wanted, busy = self._config.rollout.tasks, state.busy
        slots, cursor = next_slots(self._run_seed, state.buffer.slots, state.cursor, busy, wanted)
        groups = self._roll_out(source, state, slots, state.pending)
        if self._arm.max_batches == 1:
            return Batch(tuple(groups), cursor)
        tried, groups = {*busy, *slots}, [_require_spread(g) for g in groups]
        for _ in range(1, self._arm.max_batches):
            missing = wanted - sum(g.trains and g.slot not in busy for g in groups)
            slots, cursor = next_slots(self._run_seed, state.buffer.slots, cursor, tried, missing)
            if not slots:
                break
            tried |= set(slots)
            groups += [_require_spread(g) for g in self._roll_out(source, state, slots, ())]
        return Batch(tuple(groups), cursor)

    def _roll_out(
        self, source: RolloutSource, state: LoopState, slots: Sequence[int], pending: Sequence[Proposal]
    ) -> list[Group]:
        """The episodes of the chosen slots, then those of the pending proposals."""
        paired = self._config.adaptation.acceptance == "paired"
        heads = [*slots, *(p.slot for p in pending if paired)]
        rollout = self._config.rollout
        n = rollout.rollouts
        work: list[tuple[Assignment, Proposal | None]] = [
            (Assignment(slot, state.buffer.head(slot), n), None) for slot in heads
        ]
        work += [(Assignment(p.slot, p.task, n), p) for p in pending if p.task is not None]
        sampling = Sampling(
            self._run_seed,
            "act",
            state.iteration,
            rollout.temperature,
            rollout.max_steps,
            versioned=self._config.train.staleness > 0,
        )
        with phase("rollout"):
            played = [Episode(t) for t in source.roll_out([a for a, _ in work], sampling)]
        return [
            Group(a.slot, a.task, tuple(played[k * n : (k + 1) * n]), proposal=proposal)
            for k, (a, proposal) in enumerate(work)
        ]


def _require_spread(group: Group) -> Group:
    """The group, which does not train if its outcomes are all equal. `_decide` handles the group of a rewrite."""
    return group if group.proposal is not None or group.has_spread else replace(group, trains=False)


def slot_order(run_seed: int, epoch: int, slots: Sequence[int]) -> list[int]:
    """The order in which epoch `epoch` visits the slots. It does not depend on the order of `slots`."""
    return sorted(slots, key=lambda slot: derive_seed(run_seed, "order", epoch, slot))


def next_slots(
    run_seed: int, slots: Sequence[int], cursor: int, busy: Set[int], count: int
) -> tuple[list[int], int]:
    """The next `count` slots from position `cursor` that are not in `busy`, each once, and the position after them.

    There are fewer when all others are busy. A busy slot is passed over until the next epoch. So is one that the end of
    an epoch has put among them already: where `count` does not divide the number of slots, visits differ a little.
    """
    found: list[int] = []
    orders: dict[int, list[int]] = {}
    while len(found) < min(count, len(slots) - len(busy)):
        epoch, place = divmod(cursor, len(slots))
        if epoch not in orders:
            orders[epoch] = slot_order(run_seed, epoch, slots)
        slot = orders[epoch][place]
        cursor += 1
        if slot not in busy and slot not in found:
            found.append(slot)
    return found, cursor
