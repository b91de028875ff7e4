"""Whether a run's record is consistent: every id, event, parent, decision and accuracy is computed again."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import pairwise

from rlanything.buffer.event import Event
from rlanything.buffer.fields import TaskBufferError
from rlanything.buffer.model import TaskBuffer
from rlanything.buffer.views.find.measurements import Measurement, read_measurements, rollout_files
from rlanything.buffer.views.find.runs import RunBuffer
from rlanything.buffer.views.find.source import Source
from rlanything.buffer.views.history.whole import check_rollouts, check_snapshots, saved
from rlanything.core.adaptation import AcceptanceRule, accepts, direction, outside_band
from rlanything.core.types import DECISIONS, EventKind

_CLOSE = 1e-9


@dataclass(frozen=True)
class Check:
    """One check: the number of records checked, and what is wrong with the first broken one, or None.

    records: None where the run has nothing that the check could read. note: why.
    """

    check: str
    records: int | None
    problem: str | None = None
    note: str = ""


@dataclass
class _Run:
    """A run while it is checked, and what one check computes for the next."""

    run: RunBuffer
    rule: AcceptanceRule
    heads: dict[int, dict[int, str]] = field(default_factory=dict)
    events: tuple[Event, ...] = ()
    measured: dict[tuple[int, int, str, bool], Measurement] = field(default_factory=dict)


def verify_run(source: Source, rule: AcceptanceRule) -> list[Check]:
    """All checks of the run `source`; decisions are checked by `rule`. Raises `TaskBufferError` for a file."""
    state = _Run(source.run_buffer, rule)
    steps: tuple[tuple[str, Callable[[_Run], int | None]], ...] = (
        ("snapshots: none missing, ids, digests, order of versions", _snapshots),
        ("events: whole, ids", _events),
        ("chain: each event follows the one before it, each snapshot its events", _chain),
        ("events give the snapshots: parents, versions, tries", _replay),
        ("decisions: acceptance rule", _decisions),
        ("rollouts: of the tasks that the slots had", _rollouts),
        ("accuracies: events against rollouts", _accuracies),
    )
    checks: list[Check] = []
    for name, step in steps:
        checks.append(_check(name, step, state))
        if checks[-1].problem and step in (_snapshots, _events, _rollouts):
            break  # the other checks need what this one found broken
    return checks


def _check(name: str, step: Callable[[_Run], int | None], state: _Run) -> Check:
    try:
        records = step(state)
        return Check(name, records, note="" if records is not None else _why_none(state.run))
    except TaskBufferError as error:
        return Check(name, 0, str(error))


def _why_none(run: RunBuffer) -> str:
    return "not kept" if saved(run) is False else "none here"


def _snapshots(state: _Run) -> int:
    """Reading a snapshot recomputes every task id and the digest of the whole."""
    check_snapshots(state.run)
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
            problem = f"slot {after.slot}, iteration {after.iteration}: the event comes after iteration"
            raise TaskBufferError(f"{problem} {before.iteration}")
    last = state.run.iterations[-1]
    for event in log.events:
        if event.iteration >= last:
            raise TaskBufferError(f"{_where(event)}: there is no snapshot after iteration {event.iteration}")
    state.events = log.events
    return len(log.events)


def _chain(state: _Run) -> int:
    """Reading the events checked their links; here each snapshot's head is checked. Old runs have no chain."""
    heads, (first, *later) = state.run.log.heads, state.run.iterations
    if not heads:
        chained = next((n for n in later if state.run.header(n).events), None)
        if chained is not None:
            raise TaskBufferError(
                f"{state.run.folder}/events.jsonl: it has no chain, but snapshot {chained} names the event before it"
            )
        return 0
    if heads[0] != state.run.header(first).digest:
        raise TaskBufferError(
            f"{state.run.folder}/events.jsonl: its chain does not begin with snapshot {first}"
        )
    for iteration in later:
        before = sum(event.iteration < iteration for event in state.events)
        if state.run.header(iteration).events != heads[before]:
            raise TaskBufferError(
                f"snapshot {iteration}: it was written after other events than the {before} before it: "
                "the last of them was changed, or some were removed or put in at the end"
            )
    return len(heads) - 1


def _replay(state: _Run) -> int:
    """Each snapshot with its events applied must give the next one."""
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
    """Alg. 1: which tasks are to change, and which changes are accepted."""
    for event in state.events:
        if event.kind in DECISIONS:
            check_decision(event, state.rule)
        else:
            _request(event, state.rule)
    return len(state.events)


def check_decision(event: Event, rule: AcceptanceRule) -> None:
    """Raise `TaskBufferError` unless a rewrite was accepted or rejected as the rule says."""
    if event.accuracy is None:  # every rollout crashed: nothing to check, as `Event` refuses to accept it
        return
    accepted = accepts(event.direction, event.parent_accuracy, event.accuracy, rule)
    if event.kind is EventKind.REJECTED and _refused_otherwise(event):
        return
    if accepted != (event.kind is EventKind.ACCEPTED):
        by = f"{rule.acceptance} rule with [{rule.alpha_low}, {rule.alpha_high}]"
        step = f"{event.parent_accuracy:.3f} -> {event.accuracy:.3f}"
        must = "accepted" if accepted else "rejected"
        raise TaskBufferError(f"{_where(event)}: {event.direction} {step} must be {must} by the {by}")


def _refused_otherwise(event: Event) -> bool:
    """Whether the rule did not decide, as where the tests of a rewritten problem contradict each other.

    What decided is not in the buffer. A replay computes it again.
    """
    after = event.accuracy
    return (
        bool(event.reason)
        and after is not None
        and event.reason != outside_band(event.parent_accuracy, after)
    )


def _request(event: Event, rule: AcceptanceRule) -> None:
    if direction(event.parent_accuracy, rule) is not event.direction:
        what = f"a task solved {event.parent_accuracy:.3f} is not to be made {event.direction}"
        band = f"[{rule.alpha_low}, {rule.alpha_high}]"
        raise TaskBufferError(f"{_where(event)}: {what} with the band {band}")


def _rollouts(state: _Run) -> int | None:
    if not check_rollouts(state.run) and len(state.run.iterations) > 1:
        return None
    groups = 0
    tried = {(e.iteration, e.slot, e.task.task_id) for e in state.events if e.kind in DECISIONS and e.task}
    for iteration, path in rollout_files(state.run).items():
        heads = state.heads.get(iteration, {})
        for m in read_measurements(state.run, iteration, path):
            if not m.proposal and heads and heads.get(m.slot) != m.task_id:
                problem = f"slot {m.slot}: rollouts of task {m.task_id[:12]}, but the slot had"
                raise TaskBufferError(f"{path}, {problem} {heads.get(m.slot, 'no task')[:12]}")
            if m.proposal and (m.iteration, m.slot, m.task_id) not in tried:
                problem = (
                    f"slot {m.slot}: rollouts of the rewrite {m.task_id[:12]}, and no event decides on it"
                )
                raise TaskBufferError(f"{path}, {problem}")
            state.measured[m.iteration, m.slot, m.task_id, m.proposal] = m
            groups += 1
    return groups


def _accuracies(state: _Run) -> int | None:
    if not rollout_files(state.run):
        return None if len(state.run.iterations) > 1 else 0
    known: dict[tuple[int, str], set[float]] = defaultdict(set)
    for (_, slot, task_id, _), m in state.measured.items():
        if m.accuracy is not None:
            known[slot, task_id].add(m.accuracy)
    for event in state.events:
        _measured(event, state.measured)
        if event.parent_accuracy not in known[event.slot, event.parent_id]:
            problem = f"acc(q) = {event.parent_accuracy:.3f} of its parent was measured in no iteration"
            raise TaskBufferError(f"{_where(event)}: {problem}")
    return len(state.events)


def _measured(event: Event, measured: Mapping[tuple[int, int, str, bool], Measurement]) -> None:
    """A request has its parent's acc(q) of the same iteration, a decision that of its proposal."""
    decided = event.kind in DECISIONS
    task_id = event.task.task_id if decided and event.task else event.parent_id
    stated = event.accuracy if decided else event.parent_accuracy
    found = measured.get((event.iteration, event.slot, task_id, decided))
    if found is None:
        raise TaskBufferError(f"{_where(event)}: no rollouts of task {task_id[:12]} in that iteration")
    if not _equal(found.accuracy, stated):
        problem = f"{found.solved} of {found.rollouts} rollouts solved task {task_id[:12]}"
        raise TaskBufferError(f"{_where(event)}: {problem}, the event says {stated}")


def _equal(found: float | None, stated: float | None) -> bool:
    if found is None or stated is None:
        return found is stated
    return abs(found - stated) < _CLOSE


def _where(event: Event) -> str:
    return f"slot {event.slot}, iteration {event.iteration}, {event.kind} event"
