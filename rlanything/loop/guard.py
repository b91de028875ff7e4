"""A time limit for environment code. An environment that hangs must not hang the run."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def deadline(seconds: float) -> Iterator[None]:
    """Raise `TimeoutError` in the block after `seconds`.

    It uses SIGALRM, which works only in the main thread of a process. The loop runs there. In another thread this limit
    does nothing, and only the environment's own time limit applies.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def expire(_signum: int, _frame: FrameType | None) -> None:
        raise TimeoutError(f"no answer within {seconds:g} s")

    previous = signal.signal(signal.SIGALRM, expire)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, previous)
