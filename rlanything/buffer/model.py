"""The versioned task buffer as an immutable value: its slots, and the versions that each slot had.

Applying events gives a new buffer. Slots that did not change are shared between the two, and each slot keeps its own
digest, so the cost of an iteration is that of the slots it changed. Nothing here reads or writes files.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Self

from rlanything.buffer import fields
from rlanything.buffer.event import Event
from rlanything.buffer.fields import TaskBufferError, canonical_line
from rlanything.core.types import Direction, EventKind, Json, Task


@dataclass(frozen=True)
class Version:
    """A task that a slot had. v0 is the first one; it has no direction and no accuracies.

    iteration: the one in which this version became the head.
    accuracy_before, accuracy: acc(q) of the version it replaced and its own acc(q'), at the time it was accepted.
    """

    number: int
    task: Task
    iteration: int = 0
    accuracy_before: float | None = None
    accuracy: float | None = None
    direction: Direction | None = None

    def __post_init__(self) -> None:
        fields.check_share("accuracy_before", self.accuracy_before)
        fields.check_share("accuracy", self.accuracy)

    def to_json(self) -> dict[str, Json]:
        """The version as a JSON object, with its task."""
        return {
            "number": int(self.number),
            "iteration": int(self.iteration),
            "direction": None if self.direction is None else self.direction.value,
            "accuracy_before": None if self.accuracy_before is None else float(self.accuracy_before),
            "accuracy": None if self.accuracy is None else float(self.accuracy),
            "task": self.task.to_json(),
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Json]) -> Self:
        """Inverse of `to_json`. Raises `ValueError` naming the wrong field."""
        direction = fields.optional(fields.text, data, "direction")
        return cls(
            number=fields.count(data, "number"),
            task=fields.task(data, "task"),
            iteration=fields.count(data, "iteration"),
            accuracy_before=fields.optional(fields.share, data, "accuracy_before"),
            accuracy=fields.optional(fields.share, data, "accuracy"),
            direction=None if direction is None else Direction(direction),
        )


@dataclass(frozen=True)
class Lineage:
    """One slot: its versions v0, v1, ..., and in `tried` the ids of the proposed tasks that never became a version."""

    slot: int
    versions: tuple[Version, ...]
    tried: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        if not self.versions or [v.number for v in self.versions] != list(range(len(self.versions))):
            raise TaskBufferError(f"slot {self.slot}: versions must be numbered 0, 1, ... without a gap")
        if any(old.iteration > new.iteration for old, new in pairwise(self.versions)):
            raise TaskBufferError(f"slot {self.slot}: a version became the head before the one it replaced")
        if len(self._version_ids) != len(self.versions) or self._version_ids & self.tried:
            raise TaskBufferError(f"slot {self.slot}: a task is listed twice")

    @cached_property
    def _version_ids(self) -> frozenset[str]:
        return frozenset(version.task.task_id for version in self.versions)

    @property
    def head(self) -> Version:
        """The slot's current version."""
        return self.versions[-1]

    def had(self, task_id: str) -> bool:
        """Whether the slot ever had this task, or it was ever proposed for it."""
        return task_id in self._version_ids or task_id in self.tried

    def apply(self, event: Event) -> Lineage:
        """The slot after `event`. Raises `TaskBufferError` when the event does not follow from the slot's head."""
        self._check_follows(event)
        if event.task is None or event.kind is EventKind.INVALID:
            return self
        task_id = event.task.task_id
        if event.kind is not EventKind.ACCEPTED:
            return self if self.had(task_id) else Lineage(self.slot, self.versions, self.tried | {task_id})
        if task_id in self._version_ids:
            raise TaskBufferError(
                f"slot {self.slot}: accepted task {task_id[:12]} is already one of its versions"
            )
        return Lineage(self.slot, (*self.versions, self._next(event, event.task)), self.tried - {task_id})

    def _check_follows(self, event: Event) -> None:
        where = f"slot {self.slot}, iteration {event.iteration}: {event.kind} event"
        head_id = self.head.task.task_id
        if event.parent_id != head_id:
            raise TaskBufferError(
                f"{where} has parent {event.parent_id[:12]}, but the slot's head is {head_id[:12]}"
            )
        if event.iteration < self.head.iteration:
            raise TaskBufferError(f"{where} comes before its parent (iteration {self.head.iteration})")

    def _next(self, event: Event, task: Task) -> Version:
        number, before = len(self.versions), event.parent_accuracy
        return Version(number, task, event.iteration, before, event.accuracy, event.direction)

    def to_json(self) -> dict[str, Json]:
        """The slot as a JSON object: a line of a snapshot."""
        versions = [version.to_json() for version in self.versions]
        return {"slot": int(self.slot), "tried": sorted(self.tried), "versions": versions}

    @classmethod
    def from_json(cls, data: Mapping[str, Json]) -> Self:
        """Inverse of `to_json`. Raises `ValueError` naming the wrong field."""
        tried = fields.sequence(data, "tried")
        if not all(isinstance(task_id, str) for task_id in tried):
            raise TaskBufferError("field 'tried' must be a list of task ids")
        versions = fields.sequence(data, "versions")
        if not all(isinstance(version, dict) for version in versions):
            raise TaskBufferError("field 'versions' must be a list of objects")
        return cls(fields.count(data, "slot"), tuple(map(Version.from_json, versions)), frozenset(tried))

    @property
    def line(self) -> bytes:
        """The slot's line in a snapshot, without its newline."""
        return canonical_line(self.to_json())

    @cached_property
    def digest(self) -> bytes:
        """sha256 (32 bytes) of the slot's line."""
        return hashlib.sha256(self.line).digest()


@dataclass(frozen=True)
class TaskBuffer:
    """All slots with their history, sorted by slot number."""

    lineages: tuple[Lineage, ...]

    def __post_init__(self) -> None:
        ordered = tuple(sorted(self.lineages, key=lambda lineage: lineage.slot))
        for before, after in pairwise(ordered):
            if before.slot == after.slot:
                raise TaskBufferError(f"slot {after.slot} is listed twice")
        object.__setattr__(self, "lineages", ordered)

    @classmethod
    def start(cls, tasks: Iterable[Task]) -> Self:
        """A new buffer: task i is v0 of slot i."""
        return cls(tuple(Lineage(slot, (Version(0, task),)) for slot, task in enumerate(tasks)))

    @cached_property
    def _positions(self) -> dict[int, int]:
        return {lineage.slot: position for position, lineage in enumerate(self.lineages)}

    @cached_property
    def slots(self) -> tuple[int, ...]:
        """The slot numbers, ascending."""
        return tuple(self._positions)

    def __len__(self) -> int:
        return len(self.lineages)

    def __contains__(self, slot: object) -> bool:
        return slot in self._positions

    def lineage(self, slot: int) -> Lineage:
        """Everything about one slot. Raises `TaskBufferError` for a slot that the buffer does not have."""
        if slot not in self._positions:
            raise TaskBufferError(f"no slot {slot} in a buffer of {len(self)} slots")
        return self.lineages[self._positions[slot]]

    def head(self, slot: int) -> Task:
        """The slot's current task."""
        return self.lineage(slot).head.task

    def versions(self, slot: int) -> tuple[Version, ...]:
        """The slot's versions, v0 first."""
        return self.lineage(slot).versions

    def had(self, slot: int, task_id: str) -> bool:
        """Whether the slot ever had this task, or it was proposed for it: it is not proposed a second time."""
        return self.lineage(slot).had(task_id)

    def apply(self, events: Iterable[Event]) -> TaskBuffer:
        """The buffer after `events`, in order, or none of them. Raises `TaskBufferError` if one does not follow."""
        after: dict[int, Lineage] = {}
        for event in events:
            lineage = after.get(event.slot) or self.lineage(event.slot)
            after[event.slot] = lineage.apply(event)
        if not after:
            return self
        return TaskBuffer(tuple(after.get(lineage.slot, lineage) for lineage in self.lineages))

    def origin(self) -> TaskBuffer:
        """The buffer of v0s that this one grew from."""
        return TaskBuffer(tuple(Lineage(lineage.slot, lineage.versions[:1]) for lineage in self.lineages))

    @property
    def accepted(self) -> int:
        """How many proposals became versions, over all slots."""
        return sum(len(lineage.versions) - 1 for lineage in self.lineages)

    def changed(self, since: int = 0) -> dict[int, int]:
        """Slots that are no longer at v0, with the iteration of their head, if that is `since` or later."""
        moved = (lineage for lineage in self.lineages if len(lineage.versions) > 1)
        return {lineage.slot: lineage.head.iteration for lineage in moved if lineage.head.iteration >= since}

    @cached_property
    def digest(self) -> str:
        """64 hex digits for the whole content (see `combine`). Equal buffers have equal digests."""
        return combine(lineage.digest for lineage in self.lineages)


def combine(line_digests: Iterable[bytes]) -> str:
    """A buffer's digest: sha256 over the sha256 (32 bytes) of each slot's line, in slot order.

    With two levels a file is checked without parsing it, and an iteration hashes only the slots that it changed.
    """
    whole = hashlib.sha256()
    for digest in line_digests:
        whole.update(digest)
    return whole.hexdigest()
