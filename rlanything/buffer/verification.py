"""Whether a run's record holds together: every id, event, parent, decision and accuracy computed again."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import pairwise

from rlanything.buffer.event import Event
from rlanything.buffer.fields import TaskBufferError
from rlanything.buffer.measured import Measurement, read_measurements, rollout_files
from rlanything.buffer.model import TaskBuffer
from rlanything.buffer.runs import RunBuffer
from rlanything.buffer.source import Band, Source
from rlanything.core.types import Direction, EventKind, Json

_CLOSE = 1e-9
_DECIDED = (EventKind.ACCEPTED, EventKind.REJECTED)


@dataclass(frozen=True)
class Check:
    """One kind of thing that was recomputed: how many records, and what is wrong with the first broken one, or ''."""

    name: str
    records: int
    problem: str = ""

    def to_json(self) -> dict[str, Json]:
        """As a JSON object."""
        return {"check": self.name, "records": self.records, "problem": self.problem or None}


@dataclass
class _Run:
    """A run while it is checked. A check that needs what another one found broken is left out."""

    run: RunBuffer
    band: Band
    heads: dict[int, dict[int, str]] = field(default_factory=dict)
    events: tuple[Event, ...] = ()
    measured: dict[tuple[int, int, str, bool], Measurement] = field(default_factory=dict)


def verify_run(source: Source) -> list[Check]:
    """Every check of the run that `source` names, in order. Raises `TaskBufferError` for what is no run."""
    if source.run is None:
        raise TaskBufferError(f"{source.name} is a file, not a run")
    state = _Run(source.run, source.band)
    steps: tuple[tuple[str, Callable[[_Run], int]], ...] = (
        ("snapshots: ids, digests, order of versions", _snapshots),
        ("events: whole, ids", _events),
        ("events give the snapshots: parents, versions, tries", _replay),
        ("decisions: acceptance rule", _decisions),
        ("rollouts: of the tasks that the slots had", _rollouts),
        ("accuracies: events against rollouts", _accuracies),
    )
    checks: list[Check] = []
    for name, step in steps:
        checks.append(_check(name, step, state))
        if checks[-1].problem and step in (_snapshots, _events):
            break  # what follows would only repeat it
    return checks


def _check(name: str, step: Callable[[_Run], int], state: _Run) -> Check:
    try:
        return Check(name, step(state))
    except TaskBufferError as error:
        return Check(name, 0, str(error))


def _snapshots(state: _Run) -> int:
    """Reading a snapshot recomputes every task id and the digest of the whole."""
    count = 0
    for iteration in state.run.iterations:
        buffer = state.run.at(iteration)
        state.heads[iteration] = {slot: buffer.head(slot).task_id for slot in buffer.slots}
        count += sum(len(lineage.versions) for lineage in buffer.lineages)
    return count


def _events(state: _Run) -> int:
    log = state.run.log
    if log.torn:
        raise TaskBufferError(
            f"{state.run.folder}/events.jsonl ends in {log.torn} bytes of a record cut short"
        )
    for before, after in pairwise(log.events):
        if after.iteration < before.iteration:
            told = f"slot {after.slot}, iteration {after.iteration}: the event comes after iteration"
            raise TaskBufferError(f"{told} {before.iteration}")
    last = state.run.iterations[-1]
    for event in log.events:
        if event.iteration >= last:
            raise TaskBufferError(f"{_where(event)}: there is no snapshot after iteration {event.iteration}")
    state.events = log.events
    return len(log.events)


def _replay(state: _Run) -> int:
    """Each snapshot, with the events up to the next one applied, must be the next one."""
    buffer = state.run.at(state.run.iterations[0])
    for begin, end in pairwise(state.run.iterations):
        buffer = buffer.apply(event for event in state.events if begin <= event.iteration < end)
        stored = state.run.at(end)
        if buffer.digest != stored.digest:
            raise TaskBufferError(f"snapshot {end}: {_first_difference(buffer, stored)}")
    return len(state.run.iterations)


def _first_difference(replayed: TaskBuffer, stored: TaskBuffer) -> str:
    for slot in sorted({*replayed.slots, *stored.slots}):
        if slot not in stored or slot not in replayed:
            return f"slot {slot} is {'missing' if slot in replayed else 'not explained by any event'}"
        if replayed.lineage(slot) != stored.lineage(slot):
            ids = [buffer.head(slot).task_id[:12] for buffer in (replayed, stored)]
            return f"slot {slot} is not what the events make of it (head {ids[0]} by them, {ids[1]} stored)"
    return "its bytes are not canonical"


def _decisions(state: _Run) -> int:
    """Alg. 1: who is asked for a change, and which change is taken."""
    for event in state.events:
        if event.kind in _DECIDED:
            _decision(event, state.band)
        else:
            _request(event, state.band)
    return len(state.events)


def _decision(event: Event, band: Band) -> None:
    if event.accuracy is None:  # every rollout crashed: nothing was measured, so nothing may be accepted
        return
    lawful = band.accepts(event.direction, event.parent_accuracy, event.accuracy)
    if lawful != (event.kind is EventKind.ACCEPTED):
        rule = f"{band.acceptance} rule with [{band.low}, {band.high}]"
        told = f"{event.parent_accuracy:.3f} -> {event.accuracy:.3f}"
        must = "accepted" if lawful else "rejected"
        raise TaskBufferError(f"{_where(event)}: {event.direction} {told} must be {must} by the {rule}")


def _request(event: Event, band: Band) -> None:
    acc = event.parent_accuracy
    lawful = acc > band.high if event.direction is Direction.HARDER else acc < band.low
    if not lawful:
        told = f"a task solved {acc:.3f} is not to be made {event.direction}"
        raise TaskBufferError(f"{_where(event)}: {told} with the band [{band.low}, {band.high}]")


def _rollouts(state: _Run) -> int:
    groups = 0
    for iteration, path in rollout_files(state.run).items():
        heads = state.heads.get(iteration, {})
        for m in read_measurements(state.run, iteration, path):
            if not m.proposal and heads and heads.get(m.slot) != m.task_id:
                told = f"slot {m.slot}: rollouts of task {m.task_id[:12]}, but the slot had"
                raise TaskBufferError(f"{path}, {told} {heads.get(m.slot, 'no task')[:12]}")
            state.measured[m.iteration, m.slot, m.task_id, m.proposal] = m
            groups += 1
    return groups


def _accuracies(state: _Run) -> int:
    with_rollouts = set(rollout_files(state.run))
    known: dict[tuple[int, str], set[float]] = defaultdict(set)
    for (_, slot, task_id, _), m in state.measured.items():
        if m.accuracy is not None:
            known[slot, task_id].add(m.accuracy)
    checked = [event for event in state.events if event.iteration in with_rollouts]
    for event in checked:
        _measured(event, state.measured)
        if event.parent_accuracy not in known[event.slot, event.parent_id]:
            told = f"acc(q) = {event.parent_accuracy:.3f} of its parent was measured in no iteration"
            raise TaskBufferError(f"{_where(event)}: {told}")
    return len(checked)


def _measured(event: Event, measured: Mapping[tuple[int, int, str, bool], Measurement]) -> None:
    """A request carries its parent's acc(q) of the same iteration, a decision its proposal's."""
    decided = event.kind in _DECIDED
    task_id = event.task.task_id if decided and event.task else event.parent_id
    stated = event.accuracy if decided else event.parent_accuracy
    found = measured.get((event.iteration, event.slot, task_id, decided))
    if found is None:
        raise TaskBufferError(f"{_where(event)}: no rollouts of task {task_id[:12]} in that iteration")
    if not _equal(found.accuracy, stated):
        told = f"{found.solved} of {found.rollouts} rollouts solved task {task_id[:12]}"
        raise TaskBufferError(f"{_where(event)}: {told}, the event says {stated}")


def _equal(found: float | None, stated: float | None) -> bool:
    if found is None or stated is None:
        return found is stated
    return abs(found - stated) < _CLOSE


def _where(event: Event) -> str:
    return f"slot {event.slot}, iteration {event.iteration}, {event.kind} event"
