"""What one buffer's run did that another's did not: its own events, their ends, and how the two are related."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from rlanything.buffer.event import Event
from rlanything.buffer.model import Version
from rlanything.buffer.views.causes import cause
from rlanything.buffer.views.compare.reasons import Kin, Own
from rlanything.buffer.views.find.measurements import history
from rlanything.buffer.views.find.source import Source
from rlanything.core.types import EventKind, Json


@dataclass(frozen=True)
class Side:
    """One buffer of a comparison. events: those before it that are not among those before the other, in order."""

    source: Source
    events: tuple[Event, ...]

    @cached_property
    def by_slot(self) -> Mapping[int, Sequence[Event]]:
        """The events of each slot; slots without one are absent."""
        found: dict[int, list[Event]] = defaultdict(list)
        for event in self.events:
            found[event.slot].append(event)
        return dict(found)

    def own(self, slot: int, versions: Sequence[Version], common: int) -> Own:
        """What it has of a slot with these versions, of which the first `common` are those of the other buffer."""
        kept = versions[common - 1] if common else None
        measured = None
        if self.source.run is not None and kept is not None:
            found = self._measured.get((slot, kept.task.task_id), ())
            measured = found if found or not self.source.partial else None
        return Own(versions[common:], self.by_slot.get(slot, ()), kept, measured, self.source.rule)

    @cached_property
    def _measured(self) -> Mapping[tuple[int, str], Sequence[float]]:
        found: dict[tuple[int, str], list[float]] = defaultdict(list)
        for _, key, accuracy in history(self.source.run_buffer, self.source.iteration):
            found[key].append(accuracy)
        return dict(found)

    @property
    def tries(self) -> dict[str, Json]:
        """Rejected: refused after rollouts, and why. Invalid: refused before any rollout. Pending: not decided yet.

        Among the events may be decisions on older proposals, so a decision is matched with its own proposal.
        """
        kinds = Counter(event.kind for event in self.events)
        waiting: Counter[tuple[int, str]] = Counter()
        for event in self.events:
            if event.task is not None:
                about = event.slot, event.task.task_id
                if event.kind is EventKind.PROPOSED:
                    waiting[about] += 1
                elif event.kind is not EventKind.INVALID:
                    waiting[about] = max(0, waiting[about] - 1)
        causes = Counter(found for e in self.events if (found := cause(e, self.source.rule)) is not None)
        return {
            "rejected": kinds[EventKind.REJECTED],
            "invalid": kinds[EventKind.INVALID],
            "pending": waiting.total(),
            "causes": {found.value: causes[found] for found in sorted(causes)},
        }


def sides(a: Source, b: Source) -> tuple[Side, Side]:
    """Both sides of a comparison."""
    return Side(a, new_events(b, a)), Side(b, new_events(a, b))


def new_events(a: Source, b: Source) -> tuple[Event, ...]:
    """The events before B that are not among those before A, in order.

    A file has no events, so of B's only those that made a version are told apart from what happened before A.
    """
    if a.run is None:
        return tuple(event for event in b.events if event.kind is EventKind.ACCEPTED)
    past = Counter(_identity(event) for event in a.events)
    fresh = []
    for event in b.events:
        if past[_identity(event)]:
            past[_identity(event)] -= 1
        else:
            fresh.append(event)
    return tuple(fresh)


def kin(a: Source, b: Source) -> Kin:
    """How two buffers are related."""
    if a.run is None or b.run is None or a.revision != b.revision:
        return Kin.TWO
    # The folders of a revision's runs are paths in git, and those on disk may be written in two ways.
    same = a.run.folder == b.run.folder or (
        not a.revision and a.run.folder.resolve() == b.run.folder.resolve()
    )
    if not same:
        return Kin.TWO
    return Kin.BACK if b.iteration < a.iteration else Kin.FORWARD


def _identity(event: Event) -> tuple[object, ...]:
    task_id = event.task.task_id if event.task else None
    return event.kind, event.slot, event.iteration, event.parent_id, task_id, event.seed, event.reply
