"""Progress of long work as plain lines: its name, the steps done, the time spent and left. Fit for logs and pipes.

`RLANYTHING_PROGRESS` says how much is printed. The command line sets it: `--quiet`, `--verbose`, and `live` while it
shows the progress itself, in lines that it updates (`rlanything/watch/`).
"""

from __future__ import annotations

import os
import sys
import time

from rlanything.core.errors import ConfigError, unknown

VARIABLE = "RLANYTHING_PROGRESS"
QUIET, LINES, VERBOSE, LIVE = "quiet", "lines", "verbose", "live"
LEVELS = (QUIET, LINES, VERBOSE)
"""Those that people choose; `lines` is the default."""
EVERY_S = 5.0
"""Seconds between two lines about the same work."""
LIVE_S = 1.0
"""The same where somebody shows only the last of them."""


def level() -> str:
    """How much is printed. Raises `ConfigError`."""
    found = os.environ.get(VARIABLE) or LINES
    if found not in (*LEVELS, LIVE):
        raise ConfigError(f"{VARIABLE} = {found!r}: {unknown(found, LEVELS)}")
    return found


class Ticker:
    """Prints a line at most every `every_s` seconds, and always for the last step."""

    def __init__(
        self, what: str, total: int, done: int = 0, every_s: float = EVERY_S, unit: str = ""
    ) -> None:
        """done: the steps that an earlier start did. unit: a word before their number."""
        self.what = what
        self.total = total
        self.unit = f"{unit} " if unit else ""
        self.level = level()
        self.every_s = min(every_s, LIVE_S) if self.level == LIVE else every_s
        self._first = done
        self._start = time.monotonic()
        self._last = self._start

    def at_once(self) -> Ticker:
        """The ticker, which prints its first step, too."""
        self._last = -self.every_s
        return self

    def tick(self, done: int, note: str = "") -> None:
        """Print a line if one is due. done: finished steps of `total`."""
        now = time.monotonic()
        if self.level == QUIET or (now - self._last < self.every_s and done < self.total):
            return
        self._last = now
        spent = now - self._start
        left = spent / max(1, done - self._first) * (self.total - done)
        text = f"{self.what}: {self.unit}{done}/{self.total}, {clock(spent)} so far, {clock(left)} left"
        print(f"{text}, {note}" if note else text, file=sys.stderr, flush=True)


def clock(seconds: float) -> str:
    """Seconds as m:ss or h:mm:ss."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
