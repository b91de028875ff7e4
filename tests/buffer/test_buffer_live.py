"""A run on its way: every command reads it as it stands, through the folder that the training stage writes."""

import shutil

import pytest
from buffer_cases import command, house, write_house, write_rollouts

from rlanything.buffer import append_events, read_events, snapshot_path, write_snapshot
from rlanything.buffer.views.find.runs import find_runs, open_run
from rlanything.runs.folder import RunFolder


@pytest.fixture
def run(tmp_path, monkeypatch):
    """The first of two iterations is published, the second one half written; beside it the finished run."""
    monkeypatch.chdir(tmp_path)
    write_house(tmp_path / "done")
    done = tmp_path / "done/runs/full/seed-0"
    write_rollouts(done)
    live = RunFolder(tmp_path / ".rla/live/1f/full/seed-0")
    live.recover(print)
    write_snapshot(house()[0], snapshot_path(live.path, 0))
    finished = open_run(done)

    def write(iteration, folder):
        happened = [e for e in finished.events if e.iteration == iteration]
        append_events(folder / "events.jsonl", happened, live.head(finished.at(0), iteration))
        head = read_events(folder / "events.jsonl").heads[-1]
        write_snapshot(finished.at(iteration + 1), folder / "buffer.jsonl", finished.at(0), events=head)
        shutil.copyfile(done / f"rollouts/iter_{iteration + 1:04d}.jsonl.gz", folder / "rollouts.jsonl.gz")

    live.publish(0, lambda folder: write(0, folder))
    (live.iterations / ".tmp-0001").mkdir()
    (live.iterations / ".tmp-0001" / "buffer.jsonl").write_text('{"half')
    return live, finished, lambda: live.publish(1, lambda folder: write(1, folder))


def test_it_is_read_as_the_run_that_it_will_be(run):
    live, finished, goes_on = run
    early = open_run(live.path)
    assert (early.iterations, early.latest, early.events) == (
        (0, 1),
        finished.at(1),
        finished.events_before(1),
    )
    goes_on()
    assert early.latest == finished.at(1), "what was opened stays as it was"
    assert len(early.events) == len(finished.events_before(1))
    late = open_run(live.path)
    assert (late.iterations, late.latest, late.events) == ((0, 1, 2), finished.latest, finished.events)
    assert live.buffer(1) == finished.latest


def test_every_command_takes_it(run, capsys):
    live, *_ = run
    name = live.path.relative_to(live.path.parents[4]).as_posix()
    assert find_runs(live.path.parents[2]) == [live.path]
    for words in (
        ["ls", ".rla/live"],
        ["ls", name],
        ["show", name, "3"],
        ["log", name],
        ["diff", name],
        ["verify", name],
        ["drift", name],
        ["diff", "done/runs/full/seed-0@0", f"{name}/iterations/0000/buffer.jsonl"],
    ):
        assert command(*words) == 0
    assert "every record holds" in capsys.readouterr().out


def test_a_run_that_was_started_and_published_nothing(tmp_path):
    live = RunFolder(tmp_path / "run")
    live.recover(print)
    write_snapshot(house()[0], snapshot_path(live.path, 0))
    assert (open_run(live.path).latest, open_run(live.path).events) == (house()[0], ())
