"""Times of a run: a row an iteration, in order, in a file of its own."""

from __future__ import annotations

from rlanything.core.timing import Lap, Spent
from rlanything.runs import timings


def lap(seconds: float) -> Lap:
    return Lap(Spent(seconds, 1.0), {"rollout": Spent(0.5, 0.25)}, {"tokens": 7})


def test_rows_are_by_iteration_and_the_last_one_counts(tmp_path):
    assert timings.read(tmp_path / timings.FILE) == []
    for iteration, seconds in ((0, 1.0), (2, 3.0), (1, 2.0), (0, 4.0)):
        timings.record(tmp_path, iteration, lap(seconds))
    rows = timings.read(tmp_path / timings.FILE)
    assert [(row["iteration"], row["seconds"]) for row in rows] == [(0, 4.0), (1, 2.0), (2, 3.0)]
    assert rows[0]["phases"] == {"rollout": {"seconds": 0.5, "cpu_seconds": 0.25}}
    assert rows[0]["tokens"] == 7


def test_a_finished_run_s_rows_are_kept_elsewhere(tmp_path):
    timings.record(tmp_path / "live", 0, lap(1.0))
    timings.keep(tmp_path / "live", tmp_path / "kept" / "seed-0.jsonl")
    assert timings.read(tmp_path / "kept" / "seed-0.jsonl") == timings.read(tmp_path / "live" / timings.FILE)
