"""Time and memory of `buffer diff --stat` on big buffers, and of csv-diff on the same slots.

    python -m benchmarks.buffer_diff --slots 1000000 --versions 4

Two buffers with real task ids are generated; the second is a later state of the first. All tasks have fields of the
same names, which the reader checks faster than tasks of many forms. Each command runs in its own process on two cores,
and the operating system reports its peak memory. csv-diff reads only the current tasks (two CSV files with one row a
slot): with four versions a slot, a quarter of the rows.

A file of the default size, about 220 MB, keeps within the 256 MB that the reader allows. For more rows, raise the limit
with RLANYTHING_MOST_MB in the environment, as a user would have to.

The program also prints the bytes of a generated run's snapshots, whole and as they are written. With
`--run runs/full/seed-0` it prints only those of a real run.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl

from benchmarks.buffer_sizes import sizes_of, sizes_of_generated
from rlanything.buffer.views.columns.parquet import write_frame
from rlanything.buffer.views.columns.table import COLUMNS, KEY_DIGITS, KIND, Ints

CORES = 2
_PART = 50_000
"""Slots that are generated at a time."""
_THINGS = ("mug", "apple", "knife", "plate", "book", "pillow", "soapbar", "keychain")
_STEP = f"{KIND}step"
"""In the first buffer all current tasks have the same step: there it sorts nothing, and is no column."""
_PLACES = ("cabinet", "fridge", "shelf", "drawer", "desk", "countertop")


@dataclass(frozen=True)
class Cost:
    """What a command took."""

    seconds: float
    megabytes: float
    code: int


def generate(folder: Path, slots: int, versions: int) -> tuple[Path, Path]:
    """Write a.parquet and b.parquet. In b every tenth slot has one version more, every 25th one less."""
    folder.mkdir(parents=True, exist_ok=True)
    parts = [_parts(folder, first, min(_PART, slots - first), versions) for first in range(0, slots, _PART)]
    targets = folder / "a.parquet", folder / "b.parquet"
    for target, files in zip(targets, zip(*parts, strict=True), strict=True):
        rows = sum(pl.scan_parquet(file).select(pl.len()).collect().item() for file in files)
        # No digest: computing it for a million slots takes long, and a comparison does not check it.
        write_frame(pl.concat([pl.scan_parquet(file) for file in files]), target, slots, rows - slots, "")
        for file in files:
            file.unlink()
    return targets


def _parts(folder: Path, first: int, count: int, versions: int) -> tuple[Path, Path]:
    a, b = folder / f"a-{first}.part", folder / f"b-{first}.part"
    slots = np.arange(first, first + count)
    _rows(slots, np.full(count, versions)).drop(_STEP).write_parquet(a)
    lengths = np.full(count, versions) + (slots % 10 == 0) - ((slots % 25 == 1) & (versions > 1))
    _rows(slots, lengths).write_parquet(b)
    return a, b


def _rows(slots: Ints, lengths: Ints) -> pl.DataFrame:
    """The versions of these slots. Equal slot and number give equal tasks."""
    slot = np.repeat(slots, lengths)
    number = np.arange(len(slot)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    thing, place = (slot + number) % len(_THINGS), (slot * 7 + number * 3) % len(_PLACES)
    texts = list(_texts(slot, number, thing, place))
    ids = [hashlib.sha256(_canonical(*text).encode()).hexdigest() for text in texts]
    columns = {
        "slot": slot,
        "number": number,
        "head": number == np.repeat(lengths, lengths) - 1,
        "iteration": number,
        "direction": np.where((slot + number) % 3 == 0, "easier", "harder"),
        "accuracy": ((slot * 31 + number * 17) % 9) / 8,
        "instruction": [text[0] for text in texts],
        "payload": [text[1] for text in texts],
        "task_id": ids,
        f"{KIND}goal.object": [_THINGS[k] for k in thing],
        f"{KIND}goal.place": [_PLACES[k] for k in place],
        _STEP: list(map(str, number.tolist())),
    }
    return _whole(pl.DataFrame(columns))


def _whole(frame: pl.DataFrame) -> pl.DataFrame:
    """The columns of a buffer's file: a v0 has no direction and no accuracies, only heads have tries and kinds."""
    born, head = pl.col("number") == 0, pl.col("head")
    tries = (
        pl.when(pl.col("slot") % 4 == 0).then(pl.concat_list(pl.col("task_id").str.reverse())).otherwise([])
    )
    made = frame.with_columns(
        pl.when(~born).then("direction").alias("direction"),
        pl.when(~born).then("accuracy").alias("accuracy_before"),
        pl.when(~born).then("accuracy").alias("accuracy"),
        pl.when(head).then("accuracy").alias("measured"),
        pl.lit("bench").alias("env"),
        pl.lit("{}").alias("metadata"),
        pl.col("task_id").str.head(KEY_DIGITS).str.to_integer(base=16).alias("key"),
        pl.when(head).then(tries).alias("tried"),
        *(pl.when(head).then(name).alias(name) for name in frame.columns if name.startswith(KIND)),
    )
    kinds = [name for name in frame.columns if name.startswith(KIND)]
    return made.select(*(pl.col(name).cast(kind) for name, kind in COLUMNS.items()), *kinds)


def _texts(*columns: Ints) -> Iterator[tuple[str, str]]:
    """(instruction, payload) of each version."""
    for slot, number, thing, place in zip(*(column.tolist() for column in columns), strict=True):
        payload = f'{{"goal":{{"object":"{_THINGS[thing]}","place":"{_PLACES[place]}"}},"room":{slot},"step":{number}}}'
        yield f"put {number + 1} {_THINGS[thing]} of room {slot} in the {_PLACES[place]}", payload


def _canonical(instruction: str, payload: str) -> str:
    return f'{{"env":"bench","instruction":"{instruction}","payload":{payload}}}'


def to_csv(source: Path, target: Path) -> None:
    """The current task of every slot as CSV, for tools that compare tables."""
    wanted = ("slot", "number", "direction", "measured", "instruction", "task_id")
    pl.scan_parquet(source).filter("head").select(wanted).sink_csv(target)


def cost(command: Sequence[str], folder: Path) -> Cost:
    """Run a command on two cores, its output and its errors into files beside the buffers."""
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:CORES])  # a child inherits it
    threads = {**os.environ, "POLARS_MAX_THREADS": str(CORES)}
    started = time.perf_counter()
    with (folder / "output.txt").open("wb") as output, (folder / "errors.txt").open("wb") as errors:
        child = subprocess.Popen(command, stdout=output, stderr=errors, env=threads)
        _, status, usage = os.wait4(child.pid, 0)
    return Cost(time.perf_counter() - started, usage.ru_maxrss / 1024, os.waitstatus_to_exitcode(status))


def main() -> None:
    """Generate, measure, print. Ends with the command's own error where a buffer is refused."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--slots", type=int, default=1_000_000)
    parser.add_argument("--versions", type=int, default=4)
    parser.add_argument("--folder", type=Path, help="where the buffers are kept; default: a temporary one")
    parser.add_argument("--run", type=Path, help="print the bytes of this run's snapshots, and nothing else")
    args = parser.parse_args()
    if args.run:
        print(sizes_of(args.run))
        return
    print(sizes_of_generated(slots=min(args.slots, 1000), iterations=20, share=0.005))
    if args.folder:
        _measure(args.folder, args.slots, args.versions)
        return
    with tempfile.TemporaryDirectory() as folder:
        _measure(Path(folder), args.slots, args.versions)


def _measure(folder: Path, slots: int, versions: int) -> None:
    a, b = folder / "a.parquet", folder / "b.parquet"
    if not (a.exists() and b.exists()):
        started = time.perf_counter()
        generate(folder, slots, versions)
        print(f"generated {slots} slots x {versions} versions twice in {time.perf_counter() - started:.0f} s")
    rows = pl.scan_parquet(a).select(pl.len()).collect().item()
    print(f"{rows} and {pl.scan_parquet(b).select(pl.len()).collect().item()} rows; {CORES} cores")
    rlanything = [sys.executable, "-m", "rlanything", "buffer", "diff", str(a), str(b), "--stat"]
    ours = cost(rlanything, folder)
    if ours.code:
        sys.exit((folder / "errors.txt").read_text(encoding="utf-8"))
    _print("rlanything buffer diff --stat, all versions", ours)
    print((folder / "output.txt").read_text(encoding="utf-8").split("\n")[1])
    tables = [folder / "a.csv", folder / "b.csv"]
    for source, target in zip((a, b), tables, strict=True):
        to_csv(source, target)
    script = "import sys; from csv_diff.cli import cli; sys.argv[0] = 'csv-diff'; cli()"
    other = [sys.executable, "-c", script, *map(str, tables), "--key", "slot"]
    found = cost(other, folder)
    if found.code:
        print("csv-diff: not installed (pip install csv-diff)")
    else:
        _print("csv-diff, current tasks only", found)
        print((folder / "output.txt").read_text(encoding="utf-8").split("\n")[0])


def _print(name: str, cost: Cost) -> None:
    failed = f"  exit code {cost.code}" if cost.code else ""
    print(f"{name:45} {cost.seconds:7.1f} s {cost.megabytes:7.0f} MB{failed}", flush=True)


if __name__ == "__main__":
    main()
