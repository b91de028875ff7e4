"""How long to wait before the next attempt, and how many requests may begin in a minute."""

from __future__ import annotations

import email.utils
import random
import time
from collections.abc import Callable
from datetime import UTC

MOST_DOUBLINGS = 32


def delay(attempt: int, base: float, most: float, draw: random.Random) -> float:
    """Seconds to wait after failed attempt number `attempt`, from 1 on.

    "Full jitter": uniform between 0 and min(most, base * 2^(attempt - 1)), so that processes that failed together do
    not come back together (M. Brooker, "Exponential Backoff And Jitter", AWS Architecture Blog, 2015).
    """
    return draw.uniform(0.0, min(most, base * 2.0 ** min(attempt - 1, MOST_DOUBLINGS)))


def retry_after(value: str | None, now: Callable[[], float] = time.time) -> float | None:
    """The seconds of a Retry-After header: a number or a date (RFC 9110, section 10.2.3); None where it has neither."""
    if value is None or len(value) > 64:
        return None
    if value.strip().isdecimal() and value.isascii():
        return float(value)
    try:
        date = email.utils.parsedate_to_datetime(value)
        if date.tzinfo is None:  # the oldest form names no zone; all of them are GMT
            date = date.replace(tzinfo=UTC)
        return max(0.0, date.timestamp() - now())
    except (ValueError, OverflowError, TypeError):
        return None


class Bucket:
    """A token bucket: `per_minute` units flow in evenly, and up to one second's worth can be saved.

    `take` books units and returns the seconds to wait until they are there. Bookings are in order, so none starves.
    """

    def __init__(self, per_minute: float | None, clock: Callable[[], float] = time.monotonic) -> None:
        self._rate = None if per_minute is None else per_minute / 60.0
        self._clock = clock
        self._free_at = clock()
        """When all that was booked has flowed in."""

    def take(self, units: float) -> float:
        """Book `units`; the seconds to wait before they may be used. 0 where there is no limit."""
        if self._rate is None:
            return 0.0
        now = self._clock()
        start = max(self._free_at, now - 1.0)
        self._free_at = start + units / self._rate
        return max(0.0, start - now)
