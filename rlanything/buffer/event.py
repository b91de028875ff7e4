"""An event: a proposal for a slot of the task buffer, or what became of it (Alg. 1 lines 12-14)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

from rlanything.buffer import fields
from rlanything.buffer.fields import TaskBufferError
from rlanything.core.types import Direction, EventKind, Json, Proposal, Task


@dataclass(frozen=True)
class Event:
    """A proposal for a slot: made, invalid, rejected or accepted. The first tasks and all events give the buffer.

    parent_id, parent_accuracy: the slot's head when the event happened, and its acc(q).
    task, accuracy: the proposed task q', and acc(q') once it was rolled out.
    iteration: the one in which the event happened. reason: why q' was refused, in one sentence.
    critic, reply, seed, proposer: the proposer's prompt, what it wrote, its seed, and which model it is.
    """

    kind: EventKind
    slot: int
    iteration: int
    direction: Direction
    parent_id: str
    parent_accuracy: float
    task: Task | None = None
    accuracy: float | None = None
    critic: str = ""
    reason: str = ""
    seed: int = 0
    reply: str = ""
    proposer: str = ""

    def __post_init__(self) -> None:
        if self.slot < 0 or self.iteration < 0:
            raise TaskBufferError(f"slot {self.slot}, iteration {self.iteration}: neither may be negative")
        fields.check_share("parent_accuracy", self.parent_accuracy)
        fields.check_share("accuracy", self.accuracy)
        if self.task is None and self.kind is not EventKind.INVALID:
            raise TaskBufferError(f"slot {self.slot}: a {self.kind} event needs the task that it is about")
        if self.accuracy is None and self.kind is EventKind.ACCEPTED:
            raise TaskBufferError(f"slot {self.slot}: an accepted event needs the accuracy of its task")

    @classmethod
    def of(
        cls,
        proposal: Proposal,
        kind: EventKind,
        iteration: int,
        *,
        accuracy: float | None = None,
        parent_accuracy: float | None = None,
        reason: str = "",
        proposer: str = "",
    ) -> Self:
        """What became of `proposal` in `iteration`. `parent_accuracy` replaces the proposal's acc(q) if it is given."""
        return cls(
            kind=kind,
            slot=proposal.slot,
            iteration=iteration,
            direction=proposal.direction,
            parent_id=proposal.parent_id,
            parent_accuracy=proposal.parent_accuracy if parent_accuracy is None else parent_accuracy,
            task=proposal.task,
            accuracy=accuracy,
            critic=proposal.critic,
            reason=reason or proposal.reason,
            seed=proposal.seed,
            reply=proposal.reply,
            proposer=proposer,
        )

    def to_json(self) -> dict[str, Json]:
        """The event as a JSON object. numpy and torch numbers become ints and floats."""
        return {
            "kind": self.kind.value,
            "slot": int(self.slot),
            "iteration": int(self.iteration),
            "direction": self.direction.value,
            "parent_id": self.parent_id,
            "parent_accuracy": float(self.parent_accuracy),
            "task": None if self.task is None else self.task.to_json(),
            "accuracy": None if self.accuracy is None else float(self.accuracy),
            "critic": self.critic,
            "reason": self.reason,
            "seed": int(self.seed),
            "reply": self.reply,
            "proposer": self.proposer,
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Json]) -> Self:
        """Inverse of `to_json`. Raises `ValueError` naming the wrong field."""
        return cls(
            kind=EventKind(fields.text(data, "kind")),
            slot=fields.count(data, "slot"),
            iteration=fields.count(data, "iteration"),
            direction=Direction(fields.text(data, "direction")),
            parent_id=fields.text(data, "parent_id"),
            parent_accuracy=fields.share(data, "parent_accuracy"),
            task=fields.optional(fields.task, data, "task"),
            accuracy=fields.optional(fields.share, data, "accuracy"),
            critic=fields.text(data, "critic"),
            reason=fields.text(data, "reason"),
            seed=fields.whole(data, "seed"),
            reply=fields.text(data, "reply"),
            proposer=fields.text(data, "proposer"),
        )
