"""A run on its way, read as the finished run that it will be: `.rla/live/<key>/<arm>/seed-<n>`, an iteration a folder.

    iter_0000.jsonl                      is   buffer/iter_0000.jsonl
    iterations/0006/buffer.jsonl         is   buffer/iter_0007.jsonl
    iterations/0006/rollouts.jsonl.gz    is   rollouts/iter_0007.jsonl.gz
    iterations/*/events.jsonl            are  buffer/events.jsonl, one after the other

An iteration appears by one rename, so those that are listed are whole, while the next one is being written.
"""

from __future__ import annotations

import io
import re
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from rlanything.buffer.files import DISK
from rlanything.buffer.storage import START, snapshot_iteration, snapshot_path

ITERATIONS = "iterations"
_PUBLISHED = re.compile(r"\d{4,}")
_ROLLOUTS = re.compile(r"iter_(\d{4,})\.jsonl\.gz")


@dataclass(frozen=True)
class Live:
    """The files of the run in folder `path`, of which `count` iterations were published when it was opened."""

    path: Path
    count: int

    def names(self, folder: Path) -> list[str]:
        """What lies in a folder of the finished run; nothing when there is no such folder."""
        numbers = range(1, self.count + 1)
        if folder.name == "rollouts":
            kept = [n for n in numbers if (self._iteration(n) / "rollouts.jsonl.gz").is_file()]
            return [f"iter_{n:04d}.jsonl.gz" for n in kept]
        snapshots = [snapshot_path(folder, n).name for n in numbers]
        return [START, *snapshots, "events.jsonl"] if folder.name == "buffer" else []

    def open(self, path: Path) -> BinaryIO:
        """A file of the finished run. Raises `OSError`."""
        number = snapshot_iteration(path.name)
        rollouts = _ROLLOUTS.fullmatch(path.name)
        if path.name == START:
            return DISK.open(self.path / START)
        if number is not None:
            return DISK.open(self._iteration(number) / "buffer.jsonl")
        if rollouts is not None:
            return DISK.open(self._iteration(int(rollouts[1])) / "rollouts.jsonl.gz")
        return io.BytesIO(self._events())

    def _events(self) -> bytes:
        """Every iteration's events below one header."""
        files = [self._iteration(n) / "events.jsonl" for n in range(1, self.count + 1)]
        parts = [file.read_bytes().partition(b"\n") for file in files]
        return b"".join([*(header + end for header, end, _ in parts[:1]), *(body for *_, body in parts)])

    def _iteration(self, number: int) -> Path:
        return self.path / ITERATIONS / f"{number - 1:04d}"


def live_run(path: Path) -> Live | None:
    """The run on its way in folder `path`; None when there is none."""
    folder = path / ITERATIONS
    if not ((path / START).is_file() and folder.is_dir()):
        return None
    return Live(path, sum(_PUBLISHED.fullmatch(name) is not None for name in DISK.names(folder)))
