"""The generated buffers of the benchmark are buffers, and counting by columns gives what counting by tasks gives."""

import subprocess
import sys

import polars as pl
import pytest
from buffer_cases import write_story

from benchmarks.buffer_diff import generate, main
from benchmarks.buffer_sizes import sizes_of
from rlanything.buffer import TaskBuffer
from rlanything.buffer.views import diff
from rlanything.buffer.views.columns.parquet import _lineages, write_parquet


@pytest.mark.long
def test_generated_buffers_are_real_and_compared_alike(tmp_path):
    files = generate(tmp_path, slots=120, versions=4)
    for file in files:  # reading them back checks every id
        buffer = TaskBuffer(tuple(_lineages(pl.read_parquet(file))))
        measured = pl.read_parquet(file).filter("head").select("slot", "task_id", "measured").rows()
        write_parquet(buffer, file.with_name(f"real-{file.name}"), {(s, t): m for s, t, m in measured})
    generated = diff("a.parquet", "b.parquet", details=False, root=tmp_path)
    real = diff("real-a.parquet", "real-b.parquet", root=tmp_path)
    assert generated["counts"] == real["counts"]
    assert generated["difficulty"] == real["difficulty"]
    told = [
        {(r["field"], r["value"]): r["changed"] for r in page["concentration"]} for page in (generated, real)
    ]
    assert told[0].items() <= told[1].items()
    assert (generated["counts"]["slots"], generated["counts"]["unchanged"]) == (120, 103)


def test_the_bytes_of_a_run_are_those_of_its_files(tmp_path, monkeypatch, capsys):
    run = write_story(tmp_path / "run")
    told = sizes_of(run)
    assert told.shared == sum(path.stat().st_size for path in (run / "buffer").glob("iter_*.jsonl"))
    assert (told.snapshots, told.slots) == (5, 5)
    assert told.whole > told.shared
    monkeypatch.setattr(sys, "argv", ["bench", "--run", str(run)])
    main()
    assert capsys.readouterr().out == f"{told}\n"


@pytest.mark.long
@pytest.mark.integration
def test_the_benchmark_prints_time_and_memory(tmp_path):
    words = ["-m", "benchmarks.buffer_diff", "--slots", "60", "--versions", "3", "--folder", str(tmp_path)]
    done = subprocess.run([sys.executable, *words], capture_output=True, text=True, check=True)
    assert "180 and 183 rows; 2 cores" in done.stdout
    assert "21 snapshots of 60 slots: " in done.stdout
    assert "60 slots: 51 unchanged" in done.stdout
    assert "rlanything buffer diff --stat, all versions" in done.stdout
