"""Progress of long work as plain lines: its name, the steps done, the time spent and left. Fit for logs and pipes."""

from __future__ import annotations

import sys
import time


class Ticker:
    """Prints a line at most every `every_s` seconds, and always for the last step."""

    def __init__(self, what: str, total: int, done: int = 0, every_s: float = 5.0) -> None:
        self.what = what
        self.total = total
        self.every_s = every_s
        self._first = done
        self._start = time.monotonic()
        self._last = self._start

    def tick(self, done: int, note: str = "") -> None:
        """Print a line if one is due. done: finished steps of `total`."""
        now = time.monotonic()
        if now - self._last < self.every_s and done < self.total:
            return
        self._last = now
        spent = now - self._start
        left = spent / max(1, done - self._first) * (self.total - done)
        text = f"{self.what}: {done}/{self.total}, {clock(spent)} so far, {clock(left)} left"
        print(f"{text}, {note}" if note else text, file=sys.stderr, flush=True)


def clock(seconds: float) -> str:
    """Seconds as m:ss or h:mm:ss."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
