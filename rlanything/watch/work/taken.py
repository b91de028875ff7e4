"""Takes what a command and its processes print, and shows it above lines that are updated."""

from __future__ import annotations

import os
import select
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from rich.console import Console
from rich.live import Live
from rich.text import Text

from rlanything.core.printable import safe
from rlanything.watch.work.board import Board

EVERY_S = 1.0
_CHUNK = 1 << 16
_LONGEST = 1 << 16
"""Characters of a line without an end; a longer one is shown in pieces."""


class Calm(Console):
    """A console that leaves the cursor visible: after a kill nobody would show it again."""

    def show_cursor(self, show: bool = True) -> bool:
        """Nothing."""
        return False


@contextmanager
def taken(board: Board) -> Iterator[None]:
    """In the block, what is written to standard output and error goes through `board`, also from other processes.

    Only what is a terminal is taken: output that goes to a file still goes there.
    """
    numbers = [file.fileno() for file in (sys.stderr, sys.stdout) if file.isatty()]
    kept = {number: os.dup(number) for number in numbers}
    ours, theirs = os.pipe()
    with os.fdopen(
        os.dup(numbers[0]), "w", encoding=sys.stderr.encoding, errors="backslashreplace"
    ) as terminal:
        reader = _Reader(board, ours, Calm(file=terminal, markup=False, highlight=False, emoji=False))
        for number in numbers:
            os.dup2(theirs, number)
        os.close(theirs)
        try:
            reader.start()
            yield
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            for number, saved in kept.items():
                os.dup2(saved, number)
                os.close(saved)
            reader.end()
    # `ours` stays open: a helper of multiprocessing may write its last words after the block, and must not fail for it.


class _Reader(threading.Thread):
    """Reads the pipe, and draws every second."""

    def __init__(self, board: Board, pipe: int, console: Console) -> None:
        super().__init__(name="progress", daemon=True)
        self._board, self._pipe, self._console = board, pipe, console
        self._over = threading.Event()
        self._rest = b""

    def end(self) -> None:
        """Show what was still written, remove the lines that are updated, and stop."""
        self._over.set()
        self.join()

    def run(self) -> None:
        """See the class."""
        console, no = self._console, False  # what this process prints leads into the pipe by itself
        with Live(
            console=console, auto_refresh=no, redirect_stdout=no, redirect_stderr=no, transient=True,
            vertical_overflow="crop",
        ) as live:  # fmt: skip
            drawn = 0.0
            while True:
                ready = select.select([self._pipe], [], [], 0.0 if self._over.is_set() else EVERY_S / 4)[0]
                if not (self._read() if ready else not self._over.is_set()):
                    break
                drawn = self._draw(live, drawn)
            self._say(self._rest)
            live.update(Text(""), refresh=True)

    def _draw(self, live: Live, drawn: float) -> float:
        """Draw, if it is time to; returns when it was last drawn."""
        now = time.monotonic()
        if self._over.is_set() or now - drawn < EVERY_S:
            return drawn
        # Whatever goes wrong here, the pipe must be emptied: whoever prints would wait for ever.
        with suppress(Exception):
            live.update(self._board.rows(max(20, self._console.width - 1)), refresh=True)
        return now

    def _read(self) -> bool:
        """Take what is there; False once nobody can write any more."""
        data = os.read(self._pipe, _CHUNK)
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            self._say(line)
        if len(self._rest) > _LONGEST:
            self._say(self._rest)
            self._rest = b""
        return bool(data)

    def _say(self, line: bytes) -> None:
        """Print a line for good, unless it updates another one. Of a line that overwrites itself, the last text."""
        text = line.rstrip(b"\r").rpartition(b"\r")[2].decode("utf-8", "backslashreplace")
        if text.strip() and (kept := self._board.take(text)) is not None:
            self._console.print(Text(safe(kept)), soft_wrap=True)
