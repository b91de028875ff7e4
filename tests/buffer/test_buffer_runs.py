"""A run's folder: what is in it, that the events explain the snapshots, and what is said when it is not there."""

import pytest
from buffer_cases import histories, record, relaxed, story, write_story
from hypothesis import given

from rlanything.buffer import TaskBuffer, TaskBufferError, snapshot_path, write_snapshot
from rlanything.buffer.views.find.runs import find_runs, open_run


@pytest.fixture
def run(tmp_path):
    return write_story(tmp_path / "runs" / "full" / "seed-0")


def test_open_run(run):
    opened = open_run(run)
    assert opened.iterations == (0, 1, 2, 3, 4)
    assert opened.at(2) == story()[2][2]
    assert opened.latest == story()[-1][2]
    assert len(opened.events) == 8
    assert [e.iteration for e in opened.events_before(2)] == [0, 0, 0, 1, 1]
    assert open_run(run / "buffer") == opened
    assert opened.header(4).accepted == 3


def test_the_events_explain_every_snapshot(run):
    opened = open_run(run)
    for iteration in opened.iterations:
        assert opened.replay(iteration) == opened.at(iteration)


@relaxed
@given(histories())
def test_replaying_events_over_v0_gives_the_snapshots(tmp_path_factory, history):
    start, events = history
    folder = tmp_path_factory.mktemp("run") / "buffer"
    buffer = TaskBuffer.start(start)
    record(folder, 0, buffer)
    for iteration in range(max((e.iteration for e in events), default=0) + 1):
        now = [e for e in events if e.iteration == iteration]
        buffer = buffer.apply(now)
        record(folder, iteration + 1, buffer, now)
    opened = open_run(folder.parent)
    for iteration in opened.iterations:
        assert (
            opened.replay(iteration).digest == opened.at(iteration).digest == opened.header(iteration).digest
        )
    assert opened.latest == buffer


def test_a_run_without_events_and_with_many_iterations(tmp_path):
    buffer = TaskBuffer.start([])
    for iteration in (10000, 0, 9999, 12):
        write_snapshot(buffer, snapshot_path(tmp_path, iteration))
    (tmp_path / "iter_1.jsonl.bak").touch()
    opened = open_run(tmp_path)
    assert opened.iterations == (0, 12, 9999, 10000)
    assert opened.events == ()
    with pytest.raises(TaskBufferError, match=r"no snapshot of iteration 5 \(there are 0 to 10000\)"):
        opened.at(5)


def test_what_is_no_run_is_said_so(tmp_path):
    with pytest.raises(TaskBufferError, match="nowhere: no such folder"):
        open_run(tmp_path / "nowhere")
    with pytest.raises(TaskBufferError, match="no buffer there"):
        open_run(tmp_path)
    (tmp_path / "buffer").mkdir()
    with pytest.raises(TaskBufferError, match=r"buffer: empty, it has no snapshot iter_0000\.jsonl"):
        open_run(tmp_path)


def test_find_runs_sorts_by_number_and_leaves_hidden_folders_out(tmp_path):
    buffer = TaskBuffer.start([])
    for name in ("full/seed-10", "full/seed-2", ".cache/seed-0", "base/seed-0", "full/seed-2/old/seed-9"):
        record(tmp_path / name / "buffer", 0, buffer)
    names = [path.relative_to(tmp_path).as_posix() for path in find_runs(tmp_path)]
    assert names == ["base/seed-0", "full/seed-2", "full/seed-10"]
    assert find_runs(tmp_path / "full/seed-2") == [tmp_path / "full/seed-2"]
    assert find_runs(tmp_path / "missing") == []
