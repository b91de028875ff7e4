"""A real run keeps what differs from its first snapshot, and its buffer holds whatever was asked of it."""

from pathlib import Path

from stage_cases import small

from benchmarks.buffer_sizes import sizes_of
from rlanything.buffer import snapshot_path
from rlanything.buffer.storage import START, Base, read_header
from rlanything.buffer.views import verify
from rlanything.buffer.views.find.runs import open_run


def test_later_snapshots_build_on_the_first(undisturbed):
    run = open_run(undisturbed)
    start = run.at(0)
    for number in run.iterations[1:]:
        path = snapshot_path(run.folder, number)
        assert read_header(path).base == Base(start.digest, START)
        touched = {event.slot for event in run.events_before(number) if event.task is not None}
        assert len(path.read_bytes().splitlines()) - 1 <= len(touched)
        assert run.replay(number) == run.at(number)
    assert sizes_of(undisturbed).shared == sum(p.stat().st_size for p in run.folder.glob("iter_*.jsonl"))


def test_every_record_of_a_real_run_holds(undisturbed):
    page = verify(str(undisturbed), rule=small().adaptation.rule, root=Path())
    assert [check["problem"] for check in page["checks"]] == [None] * 7
