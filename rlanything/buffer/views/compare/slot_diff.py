"""One slot of a comparison: the versions between its two tasks, the changed words and fields, and who refused what."""

from __future__ import annotations

from collections.abc import Sequence

from rlanything.buffer.event import Event
from rlanything.buffer.model import Lineage, Version
from rlanything.buffer.views.causes import cause, why_refused
from rlanything.buffer.views.compare.changes import Status
from rlanything.buffer.views.compare.reasons import REFUSED, Kin, reason
from rlanything.buffer.views.compare.sides import Side
from rlanything.buffer.views.tasks.field_diff import changed_fields
from rlanything.buffer.views.tasks.word_diff import word_diff
from rlanything.core.adaptation import AcceptanceRule
from rlanything.core.types import Direction, Json


def slot_row(
    slot: int,
    status: Status,
    old: Lineage | None,
    new: Lineage | None,
    accuracy: tuple[float | None, float | None],
    sides: tuple[Side, Side],
    kin: Kin,
) -> dict[str, Json]:
    """Everything about one slot. sides: what each buffer did that the other did not."""
    before, after = _versions(old), _versions(new)
    common = common_start([v.task.task_id for v in before], [v.task.task_id for v in after])
    undone, made = before[common:], after[common:]
    owns = sides[0].own(slot, before, common), sides[1].own(slot, after, common)
    return {
        "slot": slot,
        "status": status.value,
        "path": path_of(before, after, common, status),
        "directions": _directions(undone, made, common),
        "accuracy": {"old": accuracy[0], "new": accuracy[1]},
        **_tasks(before, after),
        "reason": reason(status, *owns, kin),
        "refused": [
            _refusal(event, side, own.rule)
            for side, own in zip("ab", owns, strict=True)
            for event in own.events
            if event.kind in REFUSED
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


def _refusal(event: Event, side: str, rule: AcceptanceRule) -> dict[str, Json]:
    task, found = event.task, cause(event, rule)
    return {
        "side": side,
        "kind": event.kind.value,
        "iteration": event.iteration,
        "direction": event.direction.value,
        "accuracy": {"old": event.parent_accuracy, "new": event.accuracy},
        "task_id": None if task is None else task.task_id,
        "instruction": None if task is None else task.instruction,
        "reason": event.reason,
        "cause": None if found is None else found.value,
        "why": why_refused(event, rule),
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
