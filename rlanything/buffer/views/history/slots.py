"""The answers of `ls` and `show` as plain JSON values. Tables and `--json` are made from them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from rlanything.buffer.event import Event
from rlanything.buffer.fields import TaskBufferError
from rlanything.buffer.model import Lineage, TaskBuffer, Version
from rlanything.buffer.views.find.measurements import measurements
from rlanything.buffer.views.find.runs import RunBuffer, open_run
from rlanything.buffer.views.find.source import Source
from rlanything.core.types import Json, Task

SHORTEST_PREFIX = 4
"""Fewer characters of a task id are refused: they could match a task by accident."""
_LONGEST_SLOT = 19
"""Digits; Python refuses to read numbers of thousands of them."""
_NAMED = 4
"""How many slots or task ids a message names of those that were found."""


@dataclass(frozen=True)
class Found:
    """A task, its slot, and in `role` which version it is."""

    lineage: Lineage
    task: Task
    role: str


def run_row(name: str, path: Path, iteration: int | None) -> dict[str, Json]:
    """One run in a list of runs. Only a snapshot's header is read. A damaged buffer is a row with an `error`."""
    try:
        run = open_run(path)
        header = run.header(run.iterations[-1] if iteration is None else iteration)
    except TaskBufferError as error:
        return {"run": name, "error": str(error)}
    counts = {"iterations": run.iterations[-1], "slots": header.slots, "accepted": header.accepted}
    return {"run": name, **counts, "digest": header.digest}


def run_page(name: str, run: RunBuffer, iteration: int | None, changed: bool) -> dict[str, Json]:
    """One run at one iteration, slot by slot. `changed` leaves out the slots that are still at v0."""
    at = run.iterations[-1] if iteration is None else iteration
    buffer = _not_empty(run, at)
    moved = buffer.changed()
    rows = [_slot_row(lineage) for lineage in buffer.lineages if lineage.slot in moved or not changed]
    totals = {
        "slots": len(buffer),
        "changed": len(moved),
        "accepted": buffer.accepted,
        "digest": buffer.digest,
    }
    return {"run": name, "iteration": at, **totals, "torn_bytes": run.log.torn, "rows": rows}


def slot_page(name: str, source: Source, target: str) -> dict[str, Json]:
    """Everything about one slot at one iteration. `target`: its number, or the beginning of a task id."""
    if not len(source.buffer):
        raise TaskBufferError(f"{name}: the buffer is empty, it has no slots")
    events = source.events
    found = find_task(source.buffer, events, target)
    slot = found.lineage.slot
    return {
        "run": name,
        "iteration": source.iteration,
        "slot": slot,
        "role": found.role,
        "task": found.task.to_json(),
        "versions": [_version_row(version) for version in found.lineage.versions],
        "events": [event.to_json() for event in events if event.slot == slot],
        "rollouts": _rollouts(source, slot),
    }


def _rollouts(source: Source, slot: int) -> list[Json]:
    """The results of a slot's rollouts, iteration by iteration."""
    if source.run is None:
        return []
    return [
        {name: value for name, value in asdict(m).items() if name != "slot"}
        for m in measurements(source.run)
        if m.slot == slot and m.iteration < source.iteration
    ]


def find_task(buffer: TaskBuffer, events: tuple[Event, ...], target: str) -> Found:
    """The task of a slot number or the beginning of a task id. Raises `TaskBufferError` unless it is exactly one."""
    if target.isascii() and target.isdecimal() and len(target) < _LONGEST_SLOT and int(target) in buffer:
        lineage = buffer.lineage(int(target))
        return Found(lineage, lineage.head.task, _role(lineage, lineage.head.task))
    if len(target) < SHORTEST_PREFIX:
        what = f"no slot {target} (slots are {buffer.slots[0]} to {buffer.slots[-1]})"
        raise TaskBufferError(f"{what}; a task id needs at least {SHORTEST_PREFIX} of its characters")
    matches = dict(_matches(buffer, events, target.lower()))
    if not matches:
        raise TaskBufferError(f"no slot and no task id that begins with {target}")
    if len(matches) > 1:
        raise TaskBufferError(_ambiguity(target, sorted(matches)))
    ((_, slot), task) = matches.popitem()
    return Found(buffer.lineage(slot), task, _role(buffer.lineage(slot), task))


def _matches(
    buffer: TaskBuffer, events: tuple[Event, ...], prefix: str
) -> Iterator[tuple[tuple[str, int], Task]]:
    """((task id, slot), task) of every version and proposal whose task id begins with `prefix`."""
    for lineage in buffer.lineages:
        for version in lineage.versions:
            if version.task.task_id.startswith(prefix):
                yield (version.task.task_id, lineage.slot), version.task
    for event in events:
        if event.task is not None and event.slot in buffer and event.task.task_id.startswith(prefix):
            yield (event.task.task_id, event.slot), event.task


def _ambiguity(target: str, matches: list[tuple[str, int]]) -> str:
    ids = sorted({task_id for task_id, _ in matches})
    if len(ids) == 1:
        slots = ", ".join(str(slot) for _, slot in matches[:_NAMED])
        return f"task {ids[0][:12]} is in {len(matches)} slots ({slots}{_more(matches)}): give the slot"
    shown = ", ".join(task_id[:16] for task_id in ids[:_NAMED])
    return f"{target} begins {len(ids)} task ids ({shown}{_more(ids)}): give more of it"


def _more(names: list[str] | list[tuple[str, int]]) -> str:
    return ", ..." if len(names) > _NAMED else ""


def _role(lineage: Lineage, task: Task) -> str:
    for version in lineage.versions:
        if version.task.task_id == task.task_id:
            return f"v{version.number}" + (" (head)" if version is lineage.head else "")
    return "proposed, never a version"


def _not_empty(run: RunBuffer, iteration: int) -> TaskBuffer:
    buffer = run.at(iteration)
    if not len(buffer):
        raise TaskBufferError(f"{run.folder}: the buffer is empty, it has no slots")
    return buffer


def _slot_row(lineage: Lineage) -> dict[str, Json]:
    head = _version_row(lineage.head)
    del head["number"]
    return {"slot": lineage.slot, "versions": len(lineage.versions), **head}


def _version_row(version: Version) -> dict[str, Json]:
    row = version.to_json()
    del row["task"]
    return {**row, "task_id": version.task.task_id, "instruction": version.task.instruction}
