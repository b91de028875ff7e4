"""`log`: the events of a run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from rlanything.buffer.event import Event
from rlanything.buffer.fields import TaskBufferError
from rlanything.buffer.views.causes import Cause, cause, why_refused
from rlanything.buffer.views.find.source import Source
from rlanything.buffer.views.history.slots import find_task
from rlanything.buffer.views.terminal import Screen, aligned, cut, heading, lay_out, plain, share
from rlanything.core.adaptation import AcceptanceRule
from rlanything.core.printable import one_line
from rlanything.core.types import Direction, EventKind, Json

_BESIDE = 84
"""Columns of a line beside the last one."""


@dataclass(frozen=True)
class Filter:
    """Which events are wanted; None and '' match everything. first, last: iterations. words: part of any text.

    cause: of a rejection, by the acceptance rule of the run's project.
    """

    kind: EventKind | None = None
    direction: Direction | None = None
    first: int | None = None
    last: int | None = None
    proposer: str = ""
    words: str = ""
    cause: Cause | None = None

    def wants(self, event: Event, rule: AcceptanceRule) -> bool:
        """Whether an event passes."""
        return (
            self.kind in (None, event.kind)
            and self.direction in (None, event.direction)
            and (self.first is None or event.iteration >= self.first)
            and (self.last is None or event.iteration <= self.last)
            and (not self.proposer or event.proposer == self.proposer)
            and self.cause in (None, cause(event, rule))
            and (not self.words or self.words.lower() in _texts(event).lower())
        )


def log_page(source: Source, target: str, wanted: Filter) -> dict[str, Json]:
    """The wanted events before the iteration of `source`, in order; of one slot if `target` names it."""
    if source.run is None:
        raise TaskBufferError(f"{source.name} is a file: it has no history of events")
    slot = find_task(source.buffer, source.events, target).lineage.slot if target else None
    numbers = {
        (lineage.slot, version.task.task_id): version.number
        for lineage in source.buffer.lineages
        for version in lineage.versions
    }
    events = [e for e in source.events if wanted.wants(e, source.rule) and slot in (None, e.slot)]
    return {
        "name": source.name,
        "slot": slot,
        "events": len(source.events),
        "torn_bytes": source.run.log.torn,
        "rows": [_row(event, numbers, source.rule) for event in events],
    }


def log_text(page: Mapping[str, Any], screen: Screen) -> str:
    """One line an event; for one slot also all texts of each event."""
    rows = page["rows"]
    about = f", slot {page['slot']}" if page["slot"] is not None else ""
    top = lay_out([heading(f"{page['name']}{about}: {len(rows)} of {page['events']} events")], screen)
    if page["torn_bytes"]:
        top += f"events.jsonl ends in {page['torn_bytes']} bytes of a record cut short; they are left out\n"
    if page["slot"] is not None:
        return top + "".join(lay_out(list(_details(row)), screen) for row in rows)
    if not rows:
        return top
    room = max(16, screen.width - _BESIDE)
    cells = [
        [*_cells(row), cut(one_line(row["why"] or row["critic"] or row["instruction"] or ""), room)]
        for row in rows
    ]
    names = ("iteration", "slot", "event", "version", "direction", "accuracy", "by", "about")
    return top + "".join(aligned(names, cells, {0, 1}, screen))


def _row(event: Event, numbers: Mapping[tuple[int, str], int], rule: AcceptanceRule) -> dict[str, Json]:
    parent, found = numbers.get((event.slot, event.parent_id)), cause(event, rule)
    return {
        "iteration": event.iteration,
        "slot": event.slot,
        "kind": event.kind.value,
        "version": parent,
        "becomes": parent + 1 if event.kind is EventKind.ACCEPTED and parent is not None else None,
        "direction": event.direction.value,
        "accuracy": {"old": event.parent_accuracy, "new": event.accuracy},
        "proposer": event.proposer,
        "task_id": event.task.task_id if event.task else None,
        "instruction": event.task.instruction if event.task else None,
        "critic": event.critic,
        "reason": event.reason,
        "cause": None if found is None else found.value,
        "why": why_refused(event, rule),
        "reply": event.reply,
    }


def _cells(row: Mapping[str, Any]) -> list[str]:
    accuracy = f"{share(row['accuracy']['old'])} -> {share(row['accuracy']['new'])}"
    what = [str(row["iteration"]), str(row["slot"]), row["kind"], _version(row), row["direction"], accuracy]
    return [*what, one_line(row["proposer"]) or "-"]


def _version(row: Mapping[str, Any]) -> str:
    before = "v?" if row["version"] is None else f"v{row['version']}"
    return before if row["becomes"] is None else f"{before} -> v{row['becomes']}"


def _details(row: Mapping[str, Any]) -> Iterator[Any]:
    iteration, _, kind, version, direction, accuracy, by = _cells(row)
    proposer = "" if by == "-" else f"  by {by}"
    yield plain("")
    yield heading(f"iteration {iteration}  {kind}  {version}  {direction}  accuracy {accuracy}{proposer}")
    if row["cause"]:
        yield plain(f"    cause: {row['why']}")
    for name in ("instruction", "reason", "critic", "reply"):
        if row[name]:
            yield plain(f"    {name}: {one_line(row[name])}")


def _texts(event: Event) -> str:
    instruction = event.task.instruction if event.task else ""
    return "\n".join((instruction, event.critic, event.reason, event.reply))
