"""Steps per second on the clock. Programs of other environments, which have packages of their own, import it too."""

from __future__ import annotations

import time
from collections.abc import Iterator

KINDS = ("click-button", "click-checkboxes", "login-user", "email-inbox-delete", "click-tab-2", "choose-list")
"""The pages that every environment plays, in turn."""
MOST_STEPS = 10
"""Steps of an episode."""


def rate(steps: Iterator[None], seconds: float) -> float:
    """Steps per second on the clock. The first step is not counted: it may start a browser."""
    next(steps)
    began, count = time.perf_counter(), 0
    while time.perf_counter() - began < seconds:
        next(steps)
        count += 1
    return count / (time.perf_counter() - began)
