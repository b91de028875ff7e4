"""One slot of a comparison: the versions between its two tasks, the changed words and fields, and why it changed."""

from __future__ import annotations

from collections.abc import Sequence

from rlanything.buffer.event import Event
from rlanything.buffer.model import Lineage, Version
from rlanything.buffer.views.compare.changes import Status
from rlanything.buffer.views.tasks.field_diff import changed_fields
from rlanything.buffer.views.tasks.word_diff import word_diff
from rlanything.core.types import Direction, EventKind, Json

_QUOTED = 160
"""Characters of the critic that a reason quotes."""


def slot_row(
    slot: int,
    status: Status,
    old: Lineage | None,
    new: Lineage | None,
    accuracy: tuple[float | None, float | None],
    events: Sequence[Event],
    *,
    back: bool,
) -> dict[str, Json]:
    """Everything about one slot. `events`: its events in the second buffer's run that are not in the first's.

    back: whether the second buffer is the first one's run, earlier.
    """
    before, after = _versions(old), _versions(new)
    common = common_start([v.task.task_id for v in before], [v.task.task_id for v in after])
    undone, made = before[common:], after[common:]
    return {
        "slot": slot,
        "status": status.value,
        "path": path_of(before, after, common, status),
        "directions": _directions(undone, made, common),
        "accuracy": {"old": accuracy[0], "new": accuracy[1]},
        **_tasks(before, after),
        "reason": reason(status, undone, made, events, back=back),
        "refused": [
            _refusal(event) for event in events if event.kind in (EventKind.REJECTED, EventKind.INVALID)
        ],
        "patch": _patch(old, new),
    }


def path_of(before: Sequence[Version], after: Sequence[Version], common: int, status: Status) -> str:
    """The versions from the old task to the new one: `v0 -> v1 -> v2`, or `v1 <- v0 -> v1` through a common one."""
    if status in (Status.ADDED, Status.REMOVED):
        return f"v{(after or before)[-1].number}"
    back = [f"v{version.number}" for version in reversed(before[max(common - 1, 0) :])]
    ahead = [f"v{version.number}" for version in after[common:]]
    if not common:
        return " <- ".join(back) + " | " + " -> ".join(ahead)
    return " -> ".join([" <- ".join(back), *ahead])


def reason(
    status: Status,
    undone: Sequence[Version],
    made: Sequence[Version],
    events: Sequence[Event],
    *,
    back: bool,
) -> str:
    """Why the slot has its new task, in one sentence."""
    if status is Status.UNCHANGED:
        return _refused_reason(events)
    if status is Status.ADDED:
        return "Only the second buffer has this slot."
    if status is Status.REMOVED:
        return "Only the first buffer has this slot."
    if not made:
        return _undone_reason(undone, back)
    if made[-1].direction is None:
        return "The two buffers started with different tasks in this slot."
    return f"{_measured(made[-1])}{_critic(made[-1], events)}."


def _undone_reason(undone: Sequence[Version], back: bool) -> str:
    if back:
        return f"The second buffer is from before the task was made {_ways(undone)}."
    kept = undone[0].number - 1
    return f"The task was made {_ways(undone)} in the first buffer alone; the second has v{kept}."


def _measured(version: Version) -> str:
    way = "harder" if version.direction is Direction.HARDER else "easier"
    before = version.accuracy_before
    start = "It was" if before is None else f"The policy solved {before:.0%}, so it was"
    outcome = "" if version.accuracy is None else f" and solves {version.accuracy:.0%} of it"
    return f"{start} made {way} in iteration {version.iteration}{outcome}"


def _critic(version: Version, events: Sequence[Event]) -> str:
    for event in reversed(events):
        mine = event.task is not None and event.task.task_id == version.task.task_id
        if mine and event.critic:
            said = " ".join(event.critic.split()).rstrip(".")
            return f"; the critic said: {said[:_QUOTED]}{'...' if len(said) > _QUOTED else ''}"
    return ""


def _refused_reason(events: Sequence[Event]) -> str:
    refused = [event for event in events if event.kind in (EventKind.REJECTED, EventKind.INVALID)]
    if not refused:
        return ""
    last, count = refused[-1], len(refused)
    more = f" (the last of {count} refused tries)" if count > 1 else ""
    return f"A try to make it {last.direction} was refused: {last.reason or 'outside the acceptance band'}{more}."


def _refusal(event: Event) -> dict[str, Json]:
    task = event.task
    return {
        "kind": event.kind.value,
        "iteration": event.iteration,
        "direction": event.direction.value,
        "accuracy": {"old": event.parent_accuracy, "new": event.accuracy},
        "task_id": None if task is None else task.task_id,
        "instruction": None if task is None else task.instruction,
        "reason": event.reason,
    }


def _tasks(before: Sequence[Version], after: Sequence[Version]) -> dict[str, Json]:
    old, new = (versions[-1].task if versions else None for versions in (before, after))
    sentence = word_diff(old.instruction if old else "", new.instruction if new else "")
    return {
        "task_id": {"old": old.task_id if old else None, "new": new.task_id if new else None},
        "instruction": [list(part) for part in sentence],
        "fields": changed_fields(old, new) if old and new and old.task_id != new.task_id else [],
    }


def _directions(undone: Sequence[Version], made: Sequence[Version], common: int) -> list[str]:
    """The direction of each step of the path. Undoing a harder version is a step to an easier task."""
    flipped = {Direction.HARDER: "easier", Direction.EASIER: "harder"}
    back = [flipped[v.direction] for v in reversed(undone) if v.direction is not None]
    return back + [v.direction.value for v in made if v.direction is not None] if common else []


def _ways(versions: Sequence[Version]) -> str:
    ways = dict.fromkeys(v.direction.value for v in versions if v.direction is not None)
    return " and ".join(ways) or "another one"


def _patch(old: Lineage | None, new: Lineage | None) -> dict[str, Json]:
    """What makes the new lineage of the old one: the versions kept, removed and added, and the tries."""
    before, after = _versions(old), _versions(new)
    kept = common_start(before, after)
    return {
        "kept": kept,
        "gone": [version.task.task_id for version in before[kept:]],
        "versions": [version.to_json() for version in after[kept:]],
        "tried_gone": sorted(_tried(old) - _tried(new)),
        "tried_new": sorted(_tried(new) - _tried(old)),
    }


def _versions(lineage: Lineage | None) -> tuple[Version, ...]:
    return lineage.versions if lineage else ()


def _tried(lineage: Lineage | None) -> frozenset[str]:
    return lineage.tried if lineage else frozenset()


def common_start(before: Sequence[object], after: Sequence[object]) -> int:
    """How many items are the same, from the first one on."""
    same = [old == new for old, new in zip(before, after, strict=False)]
    return same.index(False) if False in same else len(same)
