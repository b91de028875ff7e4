"""A trial reading of a Parquet file, in a child process: Polars ends the whole process on some damaged pages."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from rlanything.buffer.fields import TaskBufferError

_LONGEST_S = 600
"""Seconds that a trial may take. Ten million rows take three."""
_READ = """
import sys
import polars as pl
path, *names = sys.argv[1:]
pl.read_parquet_metadata(path)
pl.scan_parquet(path).select(names).collect(engine="streaming")
"""


def require_readable(path: Path, names: Sequence[str]) -> None:
    """Raise `TaskBufferError` unless these columns can be read."""
    command = [sys.executable, "-I", "-c", _READ, str(path.absolute()), *names]
    try:
        done = subprocess.run(command, capture_output=True, timeout=_LONGEST_S, check=False)
    except subprocess.TimeoutExpired:
        raise TaskBufferError(f"{path}: Polars needs more than {_LONGEST_S} s to read it") from None
    if done.returncode:
        raise TaskBufferError(f"{path}: a damaged Parquet file ({_last_line(done)})")


def _last_line(done: subprocess.CompletedProcess[bytes]) -> str:
    """What a failed trial said last."""
    lines = done.stderr.decode(errors="replace").strip().splitlines()
    said = [line for line in lines if line and not line.startswith("note:")]
    return said[-1][:80] if said else f"its reader ended with {done.returncode}"
