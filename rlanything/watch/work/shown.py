"""What surrounds a stage of the command line: how much it prints, lines that are updated, and what it took."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from rlanything.runs.progress import ticker
from rlanything.stages import REPORT

SPOKEN_S = 60.0


@contextmanager
def shown(root: Path, words: str, level: str, plain: bool) -> Iterator[None]:
    """Show the progress of the command `rlanything <words>` in `root` while the block runs it.

    level: '', or one of `ticker.LEVELS`. plain: leave the terminal to the command, e.g. for a debugger. What the
    command took is kept, so that the next one can say how long it will take. Raises `ConfigError` for a bad
    environment variable.
    """
    before, start = os.environ.get(ticker.VARIABLE), time.monotonic()
    chosen = level or before or ""
    os.environ[ticker.VARIABLE] = chosen
    try:
        if chosen:
            ticker.level()
        with ExitStack() as stack:
            if not chosen and not plain and words != REPORT and _terminal():
                os.environ[ticker.VARIABLE] = ticker.LIVE
                stack.enter_context(_lines(root, words))
            elif chosen != ticker.QUIET and words != REPORT and "RANK" not in os.environ:
                stack.enter_context(_spoken(root, words))
            yield
        _keep(root, words, time.monotonic() - start)
    finally:
        if before is None:
            os.environ.pop(ticker.VARIABLE, None)
        else:
            os.environ[ticker.VARIABLE] = before


def _terminal() -> bool:
    """Whether there is a terminal to update lines in, and this process alone writes to it."""
    smart = os.environ.get("TERM", "dumb") not in ("dumb", "unknown")
    return smart and "RANK" not in os.environ and sys.stderr.isatty()


@contextmanager
def _lines(root: Path, words: str) -> Iterator[None]:
    from rlanything.watch.text.words import blocks
    from rlanything.watch.work.board import Board
    from rlanything.watch.work.taken import taken

    with taken(Board(root, words, blocks(sys.stderr.encoding))):
        yield


@contextmanager
def _spoken(root: Path, words: str) -> Iterator[None]:
    """Say on a line of its own, once in a while, how long the stage and the whole will take."""
    over = threading.Event()

    def speak() -> None:
        while not over.wait(SPOKEN_S):
            print(board.stage(), file=sys.stderr, flush=True)

    from rlanything.watch.work.board import Board

    board = Board(root, words)
    thread = threading.Thread(target=speak, name="progress", daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def _keep(root: Path, words: str, seconds: float) -> None:
    from rlanything.watch.stages import keep_time

    if "RANK" not in os.environ or os.environ["RANK"] == "0":
        keep_time(root, words, seconds)
