"""A trial reading of a Parquet file, in a child process: Polars ends the whole process on some damaged pages.

The child decodes every page of the columns that will be read, and keeps none: it takes the sum of the lengths of texts,
and the greatest number.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from rlanything.buffer.fields import TaskBufferError

_LONGEST_S = 600
"""Seconds that a trial may take. Ten million rows take a few."""
_MEMORY = 2 << 30
"""Bytes that it may take, in addition to those of Polars itself."""
_READ = """
import json, resource, sys
job = json.load(sys.stdin)
sys.path[:] = job["places"]
import polars as pl

if sys.platform == "linux":  # other systems do not enforce it
    pages = int(open("/proc/self/statm").read().split()[0])
    most = pages * resource.getpagesize() + job["memory"]
    resource.setrlimit(resource.RLIMIT_AS, (most, most))
file = pl.scan_parquet(job["path"])
schema = file.collect_schema()
names = [n for n in schema.names() if n in job["names"] or (job["prefix"] and n.startswith(job["prefix"]))]
sizes, others = [], []
for name in names:
    column = pl.col(name)
    if schema[name] == pl.List(pl.String):
        sizes.append(column.list.eval(pl.element().str.len_bytes()).list.sum())
    elif isinstance(schema[name], (pl.String, pl.Categorical, pl.Enum)):
        sizes.append(column.cast(pl.String).str.len_bytes())
    elif schema[name].is_numeric() or schema[name] == pl.Boolean:
        others.append(column.max())
    else:  # a column of nulls, or of another type, which is refused when its cells are checked
        others.append(column.count())
sums = [size.cast(pl.Int64).sum().alias(str(k)) for k, size in enumerate(sizes)]
rows = pl.len().cast(pl.Int64).alias("rows")
found = file.select(rows, *sums, *others).collect(engine="streaming").row(0)
print(found[0], sum(found[1 : 1 + len(sums)]))
"""


def decoded_size(path: Path, names: Sequence[str], prefix: str) -> tuple[int, int]:
    """The rows of a file, and the bytes of the texts in these columns, and in those whose name begins with `prefix`.

    Raises `TaskBufferError` for a file that cannot be read.
    """
    job = {
        "path": str(path.absolute()),
        "names": list(names),
        "prefix": prefix,
        "places": sys.path,
        "memory": _MEMORY,
    }
    command = [sys.executable, "-I", "-c", _READ]
    try:
        done = subprocess.run(
            command, input=json.dumps(job).encode(), capture_output=True, timeout=_LONGEST_S, check=False
        )
    except subprocess.TimeoutExpired:
        raise TaskBufferError(f"{path}: Polars needs more than {_LONGEST_S} s to read it") from None
    if done.returncode:
        raise TaskBufferError(
            f"{path}: a damaged Parquet file, or one that needs too much memory ({_why(done)})"
        )
    rows, texts = map(int, done.stdout.split())
    return rows, texts


def _why(done: subprocess.CompletedProcess[bytes]) -> str:
    """What a failed trial said last."""
    lines = done.stderr.decode(errors="replace").strip().splitlines()
    said = [line for line in lines if line and not line.startswith("note:")]
    return said[-1][:80] if said else f"its reader ended with {done.returncode}"
