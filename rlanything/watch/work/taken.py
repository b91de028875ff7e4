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
from rich.control import Control
from rich.live import Live
from rich.segment import ControlType
from rich.text import Text

from rlanything.core.printable import safe
from rlanything.watch.text.words import blocks
from rlanything.watch.work.board import Board, shortened

EVERY_S = 1.0
_CHUNK = 1 << 16
_LONGEST = 1 << 16
"""Characters of a line without an end; a longer one is shown in pieces."""


KEEPS_LINES = ("XTERM_VERSION", "STY")
"""Set by xterm and GNU screen, which cut lines when they become narrower. Other terminals fold them."""


class Calm(Console):
    """A console that leaves the cursor visible: after a kill nobody would show it again."""

    def show_cursor(self, show: bool = True) -> bool:
        """Nothing."""
        return False


class Drawn:
    """The lines that are updated, in a terminal that may become narrower after they were drawn."""

    def __init__(self, live: Live, console: Console) -> None:
        self._live, self._console = live, console
        self._text = Text("")

    def show(self, text: Text) -> None:
        """Draw these lines in place of those before; what is longer than the terminal is wide is cut."""
        self._erase()
        self._text = shortened(text, max(1, self._console.width - 1), blocks(self._console.encoding))
        self._live.update(self._text, refresh=True)

    def say(self, text: Text) -> None:
        """Print a text for good, above the lines."""
        if self._folded():
            self.show(self._text)  # it is drawn again with the text, and would be folded again
        self._console.print(text, soft_wrap=True)

    def _folded(self) -> int:
        """The rows that the lines have in a terminal that became narrower, beyond one each."""
        width = max(1, self._console.width)
        lines = self._text.split("\n")[: self._console.height]
        return sum(max(0, line.cell_len - 1) // width for line in lines)

    def _erase(self) -> None:
        """Erase what rich does not: it goes up one row for each line, and would draw below folded pieces."""
        more = self._folded()
        if more and not any(name in os.environ for name in KEEPS_LINES):
            erase, up = (ControlType.ERASE_IN_LINE, 2), (ControlType.CURSOR_UP, 1)
            self._console.control(Control(ControlType.CARRIAGE_RETURN, erase, *([up, erase] * more)))


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
            with suppress(OSError):  # the terminal may be gone, and what it was not shown with it
                terminal.close()
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
        try:
            self._show()
        except Exception:  # if nobody emptied the pipe, whoever prints would wait for ever
            while (data := self._take()) is not None:
                with suppress(OSError):  # the terminal may be gone
                    os.write(self._console.file.fileno(), data)

    def _show(self) -> None:
        console, no = self._console, False  # what this process prints leads into the pipe by itself
        with Live(
            console=console, auto_refresh=no, redirect_stdout=no, redirect_stderr=no, transient=True,
            vertical_overflow="crop",
        ) as live:  # fmt: skip
            self._lines, drawn = Drawn(live, console), 0.0
            while (data := self._take()) is not None:
                self._print(data)
                drawn = self._draw(drawn)
            self._say(self._rest)
            self._lines.show(Text(""))

    def _take(self) -> bytes | None:
        """What was printed within a moment; None once nothing more will be."""
        ready = select.select([self._pipe], [], [], 0.0 if self._over.is_set() else EVERY_S / 4)[0]
        data = os.read(self._pipe, _CHUNK) if ready else b""
        return data if data or not (ready or self._over.is_set()) else None

    def _draw(self, drawn: float) -> float:
        """Draw, if it is time to; returns when it was last drawn."""
        now = time.monotonic()
        if self._over.is_set() or now - drawn < EVERY_S:
            return drawn
        with suppress(Exception):  # whatever goes wrong in a row, what is printed is still shown
            self._lines.show(self._board.rows(self._console.width - 1))
        return now

    def _print(self, data: bytes) -> None:
        """Print the whole lines of what was taken, and keep the rest."""
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            self._say(line)
        if len(self._rest) > _LONGEST:
            self._say(self._rest)
            self._rest = b""

    def _say(self, line: bytes) -> None:
        """Print a line for good, unless it updates another one. Of a line that overwrites itself, the last text."""
        text = line.rstrip(b"\r").rpartition(b"\r")[2].decode("utf-8", "backslashreplace")
        if text.strip() and (kept := self._board.take(text)) is not None:
            self._lines.say(Text(safe(kept)))
