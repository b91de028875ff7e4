"""The buffer as a value: what events do to it, what it refuses, and what its digest depends on."""

import json
import pickle
from dataclasses import replace

import numpy as np
import pytest
from buffer_cases import (
    ACCEPTED,
    EASIER,
    HARDER,
    INVALID,
    PROPOSED,
    REJECTED,
    event,
    histories,
    relaxed,
    story,
    task,
)
from hypothesis import given
from hypothesis import strategies as st

from rlanything.buffer import Event, Lineage, TaskBuffer, TaskBufferError, Version
from rlanything.core.types import EventKind, Proposal


@pytest.fixture
def buffer():
    return TaskBuffer.start([task(0), task(1), task(2)])


def test_start_gives_every_task_its_slot(buffer):
    assert buffer.slots == (0, 1, 2)
    assert len(buffer) == 3
    assert 2 in buffer
    assert 3 not in buffer
    assert [buffer.head(slot) for slot in buffer.slots] == [task(0), task(1), task(2)]
    assert buffer.versions(1) == (Version(0, task(1)),)
    assert (buffer.accepted, buffer.changed()) == (0, {})


def test_an_accepted_task_becomes_the_head_and_keeps_its_past(buffer):
    after = buffer.apply([event(buffer, 1, ACCEPTED, task(9), iteration=3, before=0.9, after=0.5)])
    assert after.head(1) == task(9)
    assert after.versions(1) == (Version(0, task(1)), Version(1, task(9), 3, 0.9, 0.5, HARDER))
    assert (after.accepted, after.changed(), after.changed(since=4)) == (1, {1: 3}, {})
    assert buffer.head(1) == task(1), "a buffer never changes"
    assert after.lineage(0) is buffer.lineage(0), "what an event does not touch is shared"
    assert after.origin() == buffer


@pytest.mark.parametrize("kind", [PROPOSED, INVALID, REJECTED])
def test_only_accepted_events_change_a_head(buffer, kind):
    after = buffer.apply([event(buffer, 1, kind, task(9))])
    assert after.versions(1) == buffer.versions(1)
    assert after.had(1, task(9).task_id) is (kind is not INVALID)
    assert not after.had(2, task(9).task_id), "slots know nothing of each other"


def test_had_covers_every_version_and_every_attempt(buffer):
    assert buffer.had(1, task(1).task_id)
    after = buffer.apply([event(buffer, 1, PROPOSED, task(9))])
    after = after.apply([event(after, 1, ACCEPTED, task(9), iteration=2)])
    after = after.apply([event(after, 1, REJECTED, task(8), iteration=3)])
    assert all(after.had(1, task(n).task_id) for n in (1, 8, 9))
    assert after.lineage(1).tried == {task(8).task_id}


def test_proposing_again_what_the_slot_had_adds_nothing(buffer):
    assert buffer.apply([event(buffer, 1, REJECTED, task(1))]) == buffer


def test_a_chain_in_one_call_is_applied_in_order(buffer):
    first = event(buffer, 0, ACCEPTED, task(7))
    second = Event(ACCEPTED, 0, 2, EASIER, task(7).task_id, 0.1, task(8), 0.3)
    assert [v.task for v in buffer.apply([first, second]).versions(0)] == [task(0), task(7), task(8)]
    with pytest.raises(TaskBufferError, match="slot 0, iteration 2: accepted event has parent"):
        buffer.apply([second, first])


@pytest.mark.parametrize("kind", list(EventKind))
def test_an_event_of_another_parent_is_refused_whatever_its_kind(buffer, kind):
    stale = event(buffer, 0, kind, task(8))
    moved = buffer.apply([event(buffer, 0, ACCEPTED, task(7))])
    with pytest.raises(
        TaskBufferError, match=f"parent {task(0).task_id[:12]}.*head is {task(7).task_id[:12]}"
    ):
        moved.apply([stale])


def test_other_events_that_cannot_be(buffer):
    with pytest.raises(TaskBufferError, match="no slot 5 in a buffer of 3 slots"):
        buffer.apply([replace(event(buffer, 0, PROPOSED, task(8)), slot=5)])
    moved = buffer.apply([event(buffer, 0, ACCEPTED, task(7), iteration=4)])
    with pytest.raises(TaskBufferError, match=r"before its parent \(iteration 4\)"):
        moved.apply([event(moved, 0, PROPOSED, task(8), iteration=3)])
    with pytest.raises(TaskBufferError, match="already one of its versions"):
        moved.apply([event(moved, 0, ACCEPTED, task(0), iteration=5)])


def test_a_failing_batch_changes_nothing(buffer):
    good, bad = event(buffer, 0, ACCEPTED, task(7)), event(buffer, 0, ACCEPTED, task(8))
    with pytest.raises(TaskBufferError):
        buffer.apply([good, bad])
    assert buffer == TaskBuffer.start([task(0), task(1), task(2)])


@pytest.mark.parametrize("accuracy", [-0.1, 1.1, float("nan"), float("inf")])
def test_accuracies_are_shares(buffer, accuracy):
    with pytest.raises(TaskBufferError, match=r"accuracy must lie in \[0, 1\]"):
        event(buffer, 0, ACCEPTED, task(7), after=accuracy)
    with pytest.raises(TaskBufferError, match="parent_accuracy"):
        event(buffer, 0, PROPOSED, task(7), before=accuracy)
    with pytest.raises(TaskBufferError, match="accuracy_before"):
        Version(0, task(0), accuracy_before=accuracy)


def test_an_event_says_what_it_is_about(buffer):
    with pytest.raises(TaskBufferError, match="a proposed event needs the task"):
        event(buffer, 0, PROPOSED)
    with pytest.raises(TaskBufferError, match="needs the accuracy of its task"):
        Event(ACCEPTED, 0, 1, HARDER, task(0).task_id, 0.9, task(7))
    with pytest.raises(TaskBufferError, match="negative"):
        event(buffer, 0, PROPOSED, task(7), iteration=-1)


def test_lineages_that_cannot_be():
    a, b = Version(0, task(0), iteration=2), Version(1, task(1), iteration=1)
    with pytest.raises(TaskBufferError, match="numbered"):
        Lineage(0, ())
    with pytest.raises(TaskBufferError, match="numbered"):
        Lineage(0, (b,))
    with pytest.raises(TaskBufferError, match="before the one it replaced"):
        Lineage(0, (a, b))
    with pytest.raises(TaskBufferError, match="listed twice"):
        Lineage(0, (a, Version(1, task(0), iteration=2)))
    with pytest.raises(TaskBufferError, match="listed twice"):
        Lineage(0, (a,), frozenset({task(0).task_id}))
    with pytest.raises(TaskBufferError, match="slot 0 is listed twice"):
        TaskBuffer((Lineage(0, (a,)), Lineage(0, (a,))))


def test_event_of_a_proposal():
    made = Proposal(3, HARDER, "p" * 64, 0.9, "critic", "prompt", "reply", 5, 1, task(7))
    accepted = Event.of(made, ACCEPTED, 2, accuracy=0.5, parent_accuracy=0.875, proposer="adapter")
    assert (accepted.iteration, accepted.parent_accuracy, accepted.accuracy) == (2, 0.875, 0.5)
    assert (accepted.slot, accepted.critic, accepted.reply, accepted.seed) == (3, "critic", "reply", 5)
    dropped = Event.of(replace(made, task=None, reason="no goal"), INVALID, 1)
    assert (dropped.reason, dropped.parent_accuracy, dropped.task) == ("no goal", 0.9, None)


def test_numbers_of_any_library_are_stored_as_plain_ones(buffer):
    plain = event(buffer, 1, ACCEPTED, task(9), before=1.0, after=0.5)
    odd = replace(plain, parent_accuracy=1, accuracy=np.float32(0.5), slot=np.int64(1), iteration=np.int64(1))
    assert json.dumps(odd.to_json()) == json.dumps(plain.to_json())
    assert buffer.apply([odd]).digest == buffer.apply([plain]).digest


def test_a_buffer_survives_pickling():
    last = story()[-1][2]
    copy = pickle.loads(pickle.dumps(last))
    assert (copy, copy.digest) == (last, last.digest)


def test_the_digest_is_pinned():
    """A change of this number breaks every recorded run: raise the schema version with it."""
    assert story()[-1][2].digest == "ec51dcd4bfb24f4dbab580516b1da906f7953402843f04a8b285767409eb014a"


@relaxed
@given(histories(), st.randoms())
def test_the_digest_does_not_depend_on_the_order_of_construction(history, random):
    start, events = history
    buffer = TaskBuffer.start(start).apply(events)
    shuffled = list(buffer.lineages)
    random.shuffle(shuffled)
    by_slot = sorted(events, key=lambda e: e.slot)  # stable: the order within a slot stays
    for other in (TaskBuffer(tuple(shuffled)), TaskBuffer.start(start).apply(by_slot)):
        assert (other, other.digest) == (buffer, buffer.digest)


@relaxed
@given(histories())
def test_the_digest_tells_buffers_apart(history):
    start, events = history
    buffer = TaskBuffer.start(start)
    for happened in events:
        after = buffer.apply([happened])
        assert (after.digest == buffer.digest) is (after == buffer)
        buffer = after


@relaxed
@given(histories())
def test_events_one_by_one_or_at_once_are_the_same(history):
    start, events = history
    at_once = buffer = TaskBuffer.start(start)
    at_once = at_once.apply(events)
    for happened in events:
        buffer = buffer.apply([happened])
    assert buffer == at_once
    assert at_once.accepted == sum(e.kind is ACCEPTED for e in events)
    assert at_once.origin() == TaskBuffer.start(start)
    assert all(at_once.had(e.slot, e.task.task_id) for e in events if e.kind is not INVALID)


@relaxed
@given(histories())
def test_json_and_back_is_identity(history):
    start, events = history
    for happened in events:
        assert Event.from_json(json.loads(json.dumps(happened.to_json()))) == happened
    for lineage in TaskBuffer.start(start).apply(events).lineages:
        assert Lineage.from_json(json.loads(lineage.line)) == lineage


GOOD = {
    "kind": "accepted",
    "slot": 0,
    "iteration": 1,
    "direction": "harder",
    "parent_id": "x",
    "parent_accuracy": 0.9,
    "task": task(1).to_json(),
    "accuracy": 0.5,
    "critic": "",
    "reason": "",
    "seed": 0,
    "reply": "",
    "proposer": "",
}


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("kind", "eaten", "eaten"),
        ("direction", "sideways", "sideways"),
        ("slot", -1, "'slot' must be an integer of at least 0, found int '-1'"),
        ("slot", True, "'slot' must be an integer"),
        ("iteration", 1.5, "'iteration' must be an integer"),
        ("seed", "7", "'seed' must be an integer, found str '7'"),
        ("parent_accuracy", None, "'parent_accuracy' must be a number"),
        ("accuracy", 10**400, "'accuracy' must be a number in"),
        ("reply", 5, "'reply' must be a string"),
        ("task", "do it", "'task' must be a task"),
        ("task", {**task(1).to_json(), "instruction": "another"}, "does not match its content"),
        ("task", {**task(1).to_json(), "payload": []}, "'payload' must be an object"),
        ("task", {"env": "toy"}, "'instruction' is missing"),
    ],
)
def test_fields_that_are_not_what_they_must_be(key, value, message):
    with pytest.raises(ValueError, match=message):
        Event.from_json({**GOOD, key: value})


@pytest.mark.parametrize("key", sorted(GOOD))
def test_a_missing_field_is_named(key):
    with pytest.raises(TaskBufferError, match=f"field '{key}' is missing"):
        Event.from_json({k: v for k, v in GOOD.items() if k != key})
