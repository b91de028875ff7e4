"""Which stored decisions about rewrites agree with the acceptance rule."""

from __future__ import annotations

import pytest
from buffer_cases import ACCEPTED, EASIER, REJECTED, event, task

from rlanything.buffer import TaskBuffer
from rlanything.buffer.fields import TaskBufferError
from rlanything.buffer.views.history.verification import check_decision
from rlanything.core.adaptation import AcceptanceRule, outside_band

BUFFER = TaskBuffer.start([task(1)])


def decided(kind, before: float, after: float | None, reason: str = ""):
    return event(BUFFER, 0, kind, task(2), way=EASIER, before=before, after=after, reason=reason)


@pytest.mark.parametrize(
    "stated",
    [
        decided(ACCEPTED, 0.0, 0.5),
        decided(REJECTED, 0.0, 0.875, outside_band(0.0, 0.875)),
        decided(REJECTED, 0.0, None, "every rollout crashed"),
        decided(REJECTED, 0.0, 0.5, "no two different programs pass all of its tests"),
    ],
)
def test_decisions_that_hold(stated):
    check_decision(stated, AcceptanceRule())


@pytest.mark.parametrize(
    ("stated", "must"),
    [
        (decided(REJECTED, 0.0, 0.5, outside_band(0.0, 0.5)), "accepted"),
        (decided(REJECTED, 0.0, 0.5), "accepted"),
        (decided(ACCEPTED, 0.0, 0.875), "rejected"),
        (decided(ACCEPTED, 0.0, 0.875, "the tests agree"), "rejected"),
    ],
)
def test_decisions_that_do_not(stated, must):
    with pytest.raises(TaskBufferError, match=rf"easier 0\.000 -> 0\.\d+ must be {must} by the strict rule"):
        check_decision(stated, AcceptanceRule())
