"""Snapshots that keep what differs from the first one: identity, size, older schemas, and what is wrong with a base."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from buffer_cases import ACCEPTED, command, event, histories, record, relaxed, story, task, write_story
from hypothesis import given

from rlanything.buffer import (
    TaskBuffer,
    TaskBufferError,
    read_events,
    read_snapshot,
    snapshot_path,
    write_snapshot,
)
from rlanything.buffer.storage import read_header
from rlanything.buffer.views.find.runs import open_run

KEPT = Path(__file__).parent


@pytest.fixture
def folder(tmp_path):
    return write_story(tmp_path / "runs" / "full" / "seed-0") / "buffer"


def lines(path: Path) -> list[bytes]:
    return path.read_bytes().splitlines()


def test_a_later_snapshot_holds_the_slots_that_differ_and_nothing_else(folder):
    told = {number: buffer for number, _, buffer in story()}
    assert [len(lines(snapshot_path(folder, n))) - 1 for n in range(5)] == [5, 2, 2, 2, 4]
    for number, buffer in told.items():
        path = snapshot_path(folder, number)
        assert read_snapshot(path) == buffer
        assert read_header(path).digest == buffer.digest
        own = [lineage.line for lineage in buffer.lineages if lineage != told[0].lineage(lineage.slot)]
        assert lines(path)[1:] == (own if number else [lineage.line for lineage in buffer.lineages])
    header = json.loads(lines(snapshot_path(folder, 2))[0])
    assert header["base"] == {"digest": told[0].digest, "file": "iter_0000.jsonl"}
    assert "base" not in json.loads(lines(snapshot_path(folder, 0))[0])


def test_equal_buffers_over_equal_bases_are_equal_files(folder):
    assert snapshot_path(folder, 2).read_bytes() == snapshot_path(folder, 3).read_bytes()


@relaxed
@given(histories())
def test_every_history_comes_back_from_what_differs(tmp_path_factory, history):
    start, events = history
    folder, buffer = tmp_path_factory.mktemp("b"), TaskBuffer.start(start)
    write_snapshot(buffer, snapshot_path(folder, 0))
    for number, happened in enumerate(events, start=1):
        buffer = buffer.apply([happened])
        path = snapshot_path(folder, number)
        write_snapshot(buffer, path, read_snapshot(snapshot_path(folder, 0)))
        again = read_snapshot(path)
        assert (again, again.digest) == (buffer, buffer.digest)
        first = path.read_bytes()
        write_snapshot(again, path, read_snapshot(snapshot_path(folder, 0)))
        assert path.read_bytes() == first


def test_a_buffer_of_other_slots_than_its_base_is_written_whole(tmp_path):
    base, other = TaskBuffer.start([task(0), task(1)]), TaskBuffer.start([task(0)])
    write_snapshot(other, tmp_path / "iter_0001.jsonl", base)
    assert read_header(tmp_path / "iter_0001.jsonl").base is None
    assert read_snapshot(tmp_path / "iter_0001.jsonl") == other


@pytest.mark.parametrize("above", [1, 2])
def test_the_base_is_found_in_the_folders_above_too(folder, above):
    shutil.move(snapshot_path(folder, 0), folder.parents[above - 1])
    assert read_snapshot(snapshot_path(folder, 4)) == story()[-1][2]


def test_a_base_is_read_once_for_a_whole_run(folder, monkeypatch):
    run, reads = open_run(folder), []
    reading = type(run.files).open
    monkeypatch.setattr(
        type(run.files), "open", lambda self, path: reads.append(path.name) or reading(self, path)
    )
    assert [run.at(n) for n in (1, 2, 4)] == [story()[n][2] for n in (1, 2, 4)]
    assert reads == ["iter_0001.jsonl", "iter_0000.jsonl", "iter_0002.jsonl", "iter_0004.jsonl"]


def edit(path: Path, old: bytes, new: bytes) -> None:
    content = path.read_bytes()
    assert old in content
    path.write_bytes(content.replace(old, new, 1))


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (b'"file":"iter_0000.jsonl"', b'"file":"../../x"', "line 1: field 'base' names '../../x'"),
        (
            b'"file":"iter_0000.jsonl"',
            b'"file":"iter_0009.jsonl"',
            "differs from iter_0009.jsonl, which is neither",
        ),
        (b'"file":"iter_0000.jsonl"', b'"file":"iter_0002.jsonl"', "iter_0002.jsonl is not a whole snapshot"),
        (b'"file":"iter_0000.jsonl"', b'"file":7', "line 1: field 'file' must be a string"),
        (b'"base":{"digest":"', b'"base":{"digest":"0', "it builds on an iter_0000.jsonl with digest 0"),
        (b'"base":{', b'"base":3,"x":{', "line 1: field 'base' must be an object"),
        (b'{"slot":1', b'{"slot":0', "its slots are not in ascending order, each once"),
        (b'{"slot":4', b'{"slot":9', "slot 9 is not in its base iter_0000.jsonl"),
        (b'"accuracy":0.5', b'"accuracy":0.6', "digest mismatch"),
        (b'"schema":2', b'"schema":1', "schema 1 is not supported, only 2 is"),
    ],
)
def test_damage_is_told(folder, old, new, message):
    path = snapshot_path(folder, 4)
    edit(path, old, new)
    with pytest.raises(TaskBufferError, match=rf"iter_0004\.jsonl.*{message}"):
        read_snapshot(path)


def test_a_base_that_is_missing_or_another_one_is_told(folder):
    base, path = snapshot_path(folder, 0), snapshot_path(folder, 4)
    write_snapshot(TaskBuffer.start([task(n, "another") for n in range(5)]), base)
    with pytest.raises(
        TaskBufferError, match=r"builds on an iter_0000\.jsonl with digest \w+, but that of .* is"
    ):
        read_snapshot(path)
    base.write_text("hello")
    with pytest.raises(TaskBufferError, match=r"iter_0000\.jsonl: not an rlanything task buffer file"):
        read_snapshot(path)
    base.unlink()
    with pytest.raises(TaskBufferError, match=r"only what differs from iter_0000\.jsonl, which is neither"):
        read_snapshot(path)


def test_any_truncation_of_a_snapshot_is_noticed(folder):
    path = snapshot_path(folder, 4)
    content = path.read_bytes()
    for size in range(0, len(content) - 1, 7):
        path.write_bytes(content[:size])
        with pytest.raises(TaskBufferError, match=r"iter_0004\.jsonl"):
            read_snapshot(path)


def test_an_exported_file_stands_alone(folder, tmp_path):
    assert command("export", "full/seed-0", "out.jsonl", root=str(tmp_path)) == 0
    assert read_header(tmp_path / "out.jsonl").base is None
    shutil.rmtree(folder)
    assert read_snapshot(tmp_path / "out.jsonl") == story()[-1][2]


def test_files_that_were_written_once_are_read_for_ever(tmp_path):
    kept = KEPT / "schema2"
    assert read_snapshot(kept / "iter_0004.jsonl") == story()[-1][2]
    happened = [e for _, events, _ in story() for e in events]
    assert list(read_events(kept / "events.jsonl").events) == happened
    assert read_events(kept / "events.jsonl").heads == (), "it was written before there were chains"
    assert read_events(KEPT / "chained" / "events.jsonl").events == tuple(happened)


def test_the_present_schema_is_written_as_it_was(folder):
    for name in ("iter_0000.jsonl", "iter_0004.jsonl", "events.jsonl"):
        path = KEPT / "chained" / name
        if os.environ.get("UPDATE_GOLDEN") and not path.exists():
            shutil.copyfile(folder / name, path)
        assert (folder / name).read_bytes() == path.read_bytes()


WRITES = """
import sys
from pathlib import Path
sys.path.insert(0, sys.argv[2])
from buffer_cases import story
from rlanything.buffer import read_snapshot, snapshot_path, write_snapshot
folder = Path(sys.argv[1])
start, ends = story()[0][2], [story()[2][2], story()[4][2]]
print("writing", flush=True)
while True:
    for end in ends:
        write_snapshot(start, snapshot_path(folder, 0))
        write_snapshot(end, snapshot_path(folder, 4), start)
"""


def test_a_reader_never_sees_half_a_snapshot_while_another_process_writes(folder):
    """And when that process is killed, whatever it was doing, what is there is whole."""
    wanted = {story()[n][2].digest for n in (2, 4)}
    words = [sys.executable, "-c", WRITES, str(folder), str(KEPT)]
    paths = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    with subprocess.Popen(words, stdout=subprocess.PIPE, env=paths) as writer:
        assert writer.stdout.readline() == b"writing\n"
        seen = {read_snapshot(snapshot_path(folder, 4)).digest for _ in range(400)}
        writer.kill()
    assert seen <= wanted
    assert read_snapshot(snapshot_path(folder, 4)).digest in wanted


def test_the_size_is_that_of_what_changed(tmp_path):
    start = TaskBuffer.start(task(n) for n in range(500))
    moved = start.apply([event(start, 7, ACCEPTED, task(900)), event(start, 99, ACCEPTED, task(901))])
    record(tmp_path, 0, start)
    record(tmp_path, 1, moved)
    whole = snapshot_path(tmp_path, 0).stat().st_size
    assert snapshot_path(tmp_path, 1).stat().st_size < whole / 50
