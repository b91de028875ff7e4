"""A run in training, read as the finished run that it will be.

Training publishes an iteration by renaming one folder, so each iteration has a folder of its own. The finished run has
one folder per kind of file. In `.rla/live/<key>/<arm>/seed-<n>`:

    iter_0000.jsonl                      is   buffer/iter_0000.jsonl
    iterations/0006/buffer.jsonl         is   buffer/iter_0007.jsonl
    iterations/0006/rollouts.jsonl.gz    is   rollouts/iter_0007.jsonl.gz
    iterations/*/events.jsonl            are  buffer/events.jsonl, joined

Other records of an iteration, such as tests.jsonl.gz, are found as rollouts are.
"""

from __future__ import annotations

import io
import re
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from rlanything.buffer.eventlog import events_path
from rlanything.buffer.filesystem import DISK
from rlanything.buffer.storage import FOLDER, START, snapshot_path
from rlanything.files.reader import read_bytes

ITERATIONS = "iterations"
_RECORD = ".jsonl.gz"
_PUBLISHED = re.compile(r"\d{4,}")


@dataclass(frozen=True)
class LiveRun:
    """A file system for the iterations that were published when it was made.

    places: the files of the finished run, with where each of them is now; for the events, one place an iteration.
    """

    places: dict[Path, list[Path]]

    def names(self, folder: Path) -> list[str]:
        """The names in a folder of the finished run; none when there is no such folder."""
        return [path.name for path in self.places if path.parent == folder]

    def open(self, path: Path) -> BinaryIO:
        """A file of the finished run. Raises `FileError`."""
        if path != events_path(path.parent):
            return DISK.open(self.places[path][0])
        parts = [read_bytes(place).partition(b"\n") for place in self.places[path]]
        header = b"".join(parts[0][:2]) if parts else b""
        return io.BytesIO(header + b"".join(body for *_, body in parts))


def live_run(path: Path) -> LiveRun | None:
    """The run in training in folder `path`; None when there is none."""
    if not ((path / START).is_file() and (path / ITERATIONS).is_dir()):
        return None
    names = filter(_PUBLISHED.fullmatch, DISK.names(path / ITERATIONS))
    folders = [path / ITERATIONS / name for name in sorted(names, key=int)]
    places = {path / FOLDER / START: [path / START]}
    for folder in folders:
        number = int(folder.name) + 1
        places[snapshot_path(path / FOLDER, number)] = [folder / "buffer.jsonl"]
        for name in filter(lambda name: name.endswith(_RECORD), DISK.names(folder)):
            kind = name.removesuffix(_RECORD)
            places[path / kind / f"iter_{number:04d}{_RECORD}"] = [folder / name]
    places[events_path(path / FOLDER)] = [folder / "events.jsonl" for folder in folders]
    return LiveRun(places)
