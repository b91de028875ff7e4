"""Snapshots and events on disk: identity, crashes at any byte, and every kind of damage told clearly."""

import json
import os
from dataclasses import replace
from pathlib import Path

import pytest
from buffer_cases import ACCEPTED, event, histories, relaxed, story, task
from hypothesis import given
from hypothesis import strategies as st

from rlanything.buffer import (
    TaskBuffer,
    TaskBufferError,
    append_events,
    read_events,
    read_snapshot,
    write_snapshot,
)
from rlanything.buffer.storage import read_header


@pytest.fixture
def snapshot(tmp_path):
    path = tmp_path / "iter_0004.jsonl"
    write_snapshot(story()[-1][2], path)
    return path


def story_events():
    return [happened for _, events, _ in story() for happened in events]


@relaxed
@given(histories())
def test_a_snapshot_gives_back_the_buffer_and_the_same_bytes(tmp_path_factory, history):
    start, events = history
    buffer = TaskBuffer.start(start).apply(events)
    path = tmp_path_factory.mktemp("b") / "iter_0001.jsonl"
    write_snapshot(buffer, path)
    again = read_snapshot(path)
    assert (again, again.digest) == (buffer, buffer.digest)
    first = path.read_bytes()
    write_snapshot(again, path)
    assert path.read_bytes() == first


def test_the_file_is_canonical(snapshot):
    header, *lines = [json.loads(line) for line in snapshot.read_text().splitlines()]
    buffer = story()[-1][2]
    assert header == {
        "format": "rlanything task buffer",
        "schema": 2,
        "slots": 5,
        "accepted": 3,
        "digest": buffer.digest,
    }
    assert [line["slot"] for line in lines] == [0, 1, 2, 3, 4]
    assert snapshot.read_bytes().endswith(b"\n")
    assert read_header(snapshot).digest == buffer.digest


def test_equal_buffers_are_equal_files_and_unchanged_slots_equal_lines(tmp_path):
    told = {iteration: buffer for iteration, _, buffer in story()}
    for iteration, buffer in told.items():
        write_snapshot(buffer, tmp_path / str(iteration))
    assert (tmp_path / "2").read_bytes() == (tmp_path / "3").read_bytes()
    before, after = ((tmp_path / str(i)).read_bytes().splitlines()[1:] for i in (3, 4))
    assert [old == new for old, new in zip(before, after, strict=True)] == [False, False, True, True, False]


def test_an_empty_buffer_is_a_file_too(tmp_path):
    write_snapshot(TaskBuffer.start([]), tmp_path / "a")
    assert len(read_snapshot(tmp_path / "a")) == 0


def test_a_write_that_fails_leaves_what_was_there(snapshot, monkeypatch):
    before = snapshot.read_bytes()

    def full(descriptor):
        raise OSError("disk full")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="disk full"):
        write_snapshot(TaskBuffer.start([task(1)]), snapshot)
    assert snapshot.read_bytes() == before
    assert os.listdir(snapshot.parent) == [snapshot.name]


def edited(path: Path, old: bytes, new: bytes) -> Path:
    content = path.read_bytes()
    assert old in content
    path.write_bytes(content.replace(old, new, 1))
    return path


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (b'"schema":2', b'"schema":3', r"iter_0004.jsonl: schema 3 is not supported, only 2 is"),
        (b'"schema":2', b'"schema":"x"', "schema x is not supported"),
        (b'"schema":2', b'"schema":true', "schema True is not supported, only 2 is"),
        (b'"slots":5', b'"slots":6', "the header says 6 slots, the file has 5"),
        (b'"accepted":3', b'"accepted":4', "the header says 4 accepted, the file has 3"),
        (b'"digest":"', b'"digest":"0', "digest mismatch"),
        (b'"accuracy":0.5', b'"accuracy":0.6', "digest mismatch"),
        (b'"level":7', b'"level":8', "digest mismatch"),
        (b'"level":7', b'"level": 7', "digest mismatch"),
        (b'"digest"', b'"dijest"', "iter_0004.jsonl, line 1: field 'digest' is missing"),
        (b'{"slot":1', b'{"slot":1,', r"iter_0004.jsonl, line 3: not a line of JSON"),
        (b'{"slot":1', b'{"slot":-1', r"line 3: field 'slot' must be"),
        (b'{"slot":1', b'{"slot":0', "iter_0004.jsonl: slot 0 is listed twice"),
        (b"put thing 2", b"put thing 4", "line 4: task_id .* does not match its content"),
        (b'"tried":[]', b'"tried":[3]', "line 3: field 'tried' must be a list of task ids"),
        (b'"versions":[', b'"versions":[7,', "line 2: field 'versions' must be a list of objects"),
        (b"put thing 3", b"put thing \xff", "line 5: not a line of JSON"),
        (b'{"slot":3', b'\n{"slot":3', "line 5: not a line of JSON"),
    ],
)
def test_damage_is_told_with_file_and_line(snapshot, old, new, message):
    with pytest.raises(TaskBufferError, match=message):
        read_snapshot(edited(snapshot, old, new))


def test_lines_in_another_order_are_damage(snapshot):
    header, first, second, *rest = snapshot.read_bytes().splitlines(keepends=True)
    snapshot.write_bytes(b"".join([header, second, first, *rest]))
    with pytest.raises(TaskBufferError, match="digest mismatch"):
        read_snapshot(snapshot)


def test_any_truncation_of_a_snapshot_is_noticed(snapshot):
    content = snapshot.read_bytes()
    for size in range(0, len(content) - 1, 7):  # the newline at the very end carries nothing
        snapshot.write_bytes(content[:size])
        with pytest.raises(TaskBufferError, match=r"iter_0004\.jsonl"):
            read_snapshot(snapshot)


@pytest.mark.parametrize(
    "content", [b"", b"\n", b"hello\n", b"[1]\n", b"{}\n", b"\x80\x81", b'{"schema":1}\n', b"[" * 99999]
)
def test_files_that_are_no_buffer(tmp_path, content):
    path = tmp_path / "x.jsonl"
    path.write_bytes(content)
    with pytest.raises(TaskBufferError, match=r"x\.jsonl: not an rlanything task buffer file"):
        read_snapshot(path)


def test_what_is_no_file_is_refused_without_waiting(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "device").symlink_to("/dev/zero")
    for name in ("pipe", "device"):
        for read in (read_snapshot, read_header, read_events):
            with pytest.raises(TaskBufferError, match=f"{name}: no regular file"):
                read(tmp_path / name)


def test_a_line_that_is_nested_too_deeply_is_named(tmp_path):
    path = tmp_path / "iter_0000.jsonl"
    write_snapshot(TaskBuffer.start([task(0)]), path)
    header, line = path.read_bytes().splitlines()
    deep = line.replace(b'"rooms":2', b'"rooms":' + b"[" * 300 + b"]" * 300)
    path.write_bytes(header + b"\n" + deep + b"\n")
    with pytest.raises(TaskBufferError, match=r"iter_0000\.jsonl, line 2: .*nested deeper than 200"):
        read_snapshot(path)


def test_files_that_are_not_there(tmp_path):
    for read in (read_snapshot, read_header, read_events):
        with pytest.raises(TaskBufferError, match="missing: No such file"):
            read(tmp_path / "missing")
        with pytest.raises(TaskBufferError, match="directory"):
            read(tmp_path)


def test_events_come_back_in_order(tmp_path):
    path = tmp_path / "buffer" / "events.jsonl"
    for _, events, _ in story():
        assert append_events(path, events) == 0
    assert read_events(path).events == tuple(story_events())
    assert read_events(path).torn == 0


def test_a_snapshot_is_no_events_file_and_the_other_way_round(snapshot, tmp_path):
    append_events(tmp_path / "events.jsonl", [])
    with pytest.raises(TaskBufferError, match="not an rlanything task buffer file"):
        read_snapshot(tmp_path / "events.jsonl")
    with pytest.raises(TaskBufferError, match="not an rlanything task events file"):
        read_events(snapshot)
    before = snapshot.read_bytes()
    with pytest.raises(TaskBufferError, match="not an rlanything task events file"):
        append_events(snapshot, story_events())
    assert snapshot.read_bytes() == before


@pytest.mark.parametrize("content", [b"hello", b'{"format"', b"\x00"])
def test_a_tail_without_a_header_is_no_events_file_unless_it_begins_one(tmp_path, content):
    path = tmp_path / "events.jsonl"
    path.write_bytes(content)
    if content.startswith(b"{"):
        assert read_events(path).torn == len(content)
        assert append_events(path, story_events()) == len(content)
        assert read_events(path).events == tuple(story_events())
    else:
        for act in (read_events, lambda p: append_events(p, story_events())):
            with pytest.raises(TaskBufferError, match="not a file of buffer events"):
                act(path)
        assert path.read_bytes() == content


@relaxed
@given(histories(max_events=4), st.data())
def test_cut_anywhere_every_whole_record_is_recovered(tmp_path_factory, history, data):
    path = tmp_path_factory.mktemp("b") / "events.jsonl"
    append_events(path, history[1])
    check_cut(path, path.read_bytes(), history[1], data.draw(st.integers(0, path.stat().st_size)))


@pytest.mark.long
def test_cut_at_every_byte_every_whole_record_is_recovered(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)  # thousands of waits would prove nothing more
    path = tmp_path / "events.jsonl"
    events = [replace(happened, critic="", reply="") for happened in story_events()[2:4]]
    append_events(path, events)
    whole = path.read_bytes()
    for size in range(len(whole) + 1):
        check_cut(path, whole, events, size)


def check_cut(path, whole, events, size):
    """What is left reads as the records that are whole; going on from there ends with the bytes of an uncut file."""
    path.write_bytes(whole[:size])
    log = read_events(path)
    # A record is whole when all of it but its newline is there; the header is no record.
    ends = [at for at, byte in enumerate(whole) if byte == 0x0A][1:]
    assert log.events == tuple(events[: sum(size >= end for end in ends)])
    assert append_events(path, events[len(log.events) :]) == log.torn
    assert path.read_bytes() == whole


def test_a_torn_tail_longer_than_a_block_is_cut_off(tmp_path):
    path = tmp_path / "events.jsonl"
    buffer = TaskBuffer.start([task(0)])
    big = event(buffer, 0, ACCEPTED, task(1), reply="x" * 200_000)
    append_events(path, [big, replace(big, iteration=2)])
    path.write_bytes(path.read_bytes()[:-1000])
    assert append_events(path, []) > 190_000
    assert read_events(path).events == (big,)


def test_damage_inside_an_events_file_is_not_taken_for_a_crash(tmp_path):
    path = tmp_path / "events.jsonl"
    append_events(path, story_events())
    edited(path, b'"slot":2', b'"slot":')
    with pytest.raises(TaskBufferError, match=r"events\.jsonl, line 3: not a line of JSON"):
        read_events(path)


def test_replies_are_kept_as_they_came(tmp_path):
    buffer = TaskBuffer.start([task(0)])
    odd = "\ud800 \u2028 \x85 \x00 \r\n \x1b[31m 😀"
    told = event(buffer, 0, ACCEPTED, task(1), reply=odd, critic=odd)
    append_events(tmp_path / "events.jsonl", [told])
    assert read_events(tmp_path / "events.jsonl").events == (told,)
