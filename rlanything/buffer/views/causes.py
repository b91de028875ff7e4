"""Why the acceptance rule of Alg. 1 rejected a rewrite: whether a threshold was the cause, or the rewrite itself.

The reason in the record says only that acc(q') is outside the acceptance band. The cause follows from acc(q), acc(q'),
the direction and the rule.
"""

from __future__ import annotations

from enum import StrEnum

from rlanything.buffer.event import Event
from rlanything.core.adaptation import AcceptanceRule, accepts
from rlanything.core.types import Direction, EventKind


class Cause(StrEnum):
    """Why a rewrite was rejected. The thresholds have a part in the last two only."""

    UNSOLVED = "unsolved"
    """No rollout of it succeeded."""
    NOT_HARDER = "not harder"
    """It was to be harder, and it is solved as often as the task before, or more often."""
    NOT_EASIER = "not easier"
    """It was to be easier, and it is solved as seldom as the task before, or more seldom."""
    PAST_LOW = "past alpha_low"
    """It became so hard that it left the band."""
    PAST_HIGH = "past alpha_high"
    """It became so easy that it left the band."""


def cause(event: Event, rule: AcceptanceRule) -> Cause | None:
    """Why `rule` rejects the rewrite. None for what it would accept, for other events, and without acc(q')."""
    before, after, way = event.parent_accuracy, event.accuracy, event.direction
    if event.kind is not EventKind.REJECTED or after is None or accepts(way, before, after, rule):
        return None
    if after <= 0.0:
        return Cause.UNSOLVED
    if way is Direction.HARDER:
        return Cause.PAST_LOW if after < before else Cause.NOT_HARDER
    return Cause.PAST_HIGH if after > before else Cause.NOT_EASIER


def spelled_cause(found: Cause, rule: AcceptanceRule) -> str:
    """`unsolved`, `not easier than before`, `past 0.80`."""
    if found in (Cause.NOT_HARDER, Cause.NOT_EASIER):
        return f"{found.value} than before"
    bounds = {Cause.PAST_LOW: rule.alpha_low, Cause.PAST_HIGH: rule.alpha_high}
    return f"past {bounds[found]:.2f}" if found in bounds else found.value


def why_refused(event: Event, rule: AcceptanceRule) -> str:
    """The cause in words. Where the rule is not why, the reason that the record has."""
    found = cause(event, rule)
    return event.reason if found is None else spelled_cause(found, rule)
