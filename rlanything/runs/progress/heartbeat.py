"""What a seed in training does at this moment, in a small file beside its iterations. It is no result.

The file says where the run is inside an iteration, which nothing else on disk does. It is not synced, and a disk that
refuses it does not end the run: nothing is read from it but by people who watch (`rlanything/watch/`). It goes with
the live folder.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from rlanything.core.timing import Timer

FILE = "now.json"
EVERY_S = 1.0
"""Inside a phase the file is written at most this often: a phase may sample thousands of times."""
SYNC = "sync"
"""Waiting for the disk. It belongs to what is going on, also where it is in no phase."""


class Heartbeat(Timer):
    """A timer that also writes which phase is going on."""

    def __init__(self, folder: Path | None) -> None:
        """folder: the seed's live folder; None: nothing is written."""
        super().__init__()
        self._file = None if folder is None else folder / FILE
        self._written = 0.0
        self._calls = 0
        self._state: dict[str, str | int | float] = {}
        self.begin(0)

    def begin(self, iteration: int) -> None:
        """The phases that follow are of this iteration."""
        self._calls = 0
        self._state = {"iteration": iteration, "phase": "", "since": time.time()}

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """As `Timer.phase`. A phase inside another one counts as one of its calls."""
        inner = bool(self._open) or name == SYNC
        if not inner and name != self._state["phase"]:
            self._calls = 0
            self._state |= {"phase": name, "since": time.time()}
            self._write()
        else:
            self._calls += 1
            if time.time() - self._written > EVERY_S:
                self._write()
        with super().phase(name):
            yield

    def _write(self) -> None:
        if self._file is None:
            return
        self._written = time.time()
        beside = self._file.with_name(f".{FILE}.tmp")  # only the holder of the folder's lock writes
        with suppress(OSError):
            beside.write_text(json.dumps({**self._state, "calls": self._calls, "at": self._written}))
            beside.replace(self._file)
