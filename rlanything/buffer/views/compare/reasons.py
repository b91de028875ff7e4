"""Why a slot has its task: what one buffer, or each of two, did with it, in sentences."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum, auto

from rlanything.buffer.event import Event
from rlanything.buffer.model import Version
from rlanything.buffer.views.causes import why_refused
from rlanything.buffer.views.compare.changes import Status
from rlanything.buffer.views.terminal import share
from rlanything.core.adaptation import AcceptanceRule
from rlanything.core.types import Direction, EventKind

REFUSED = (EventKind.REJECTED, EventKind.INVALID)
_QUOTED = 160
"""Characters of the critic that a reason quotes."""


class Kin(Enum):
    """How two buffers are related."""

    FORWARD = auto()
    """Iterations of one run, the first buffer not later than the second."""
    BACK = auto()
    """Iterations of one run, the first buffer later."""
    TWO = auto()
    """Of two runs, or one of them a file."""


@dataclass(frozen=True)
class Own:
    """What one buffer has of a slot that the other has not: versions, and events in order.

    kept: the last version that both have; None where they began with different tasks. measured: every acc(q) of its
    task; None where that is not known: of a file, and of a run that kept no rollouts. rule: of the buffer's project.
    """

    versions: Sequence[Version]
    events: Sequence[Event]
    kept: Version | None
    measured: Sequence[float] | None
    rule: AcceptanceRule


def reason(status: Status, a: Own, b: Own, kin: Kin) -> str:
    """Why the second buffer has its task in this slot; of two runs, what each of them did."""
    if status is Status.ADDED:
        return "Only the second buffer has this slot."
    if status is Status.REMOVED:
        return "Only the first buffer has this slot."
    if status is Status.UNCHANGED:
        sides = {"A": _tried(_refused(a), a.rule), "B": _tried(_refused(b), b.rule)}
        return " ".join(_of(name, text, kin) for name, text in sides.items() if text)
    if kin is Kin.BACK:
        return f"The second buffer is from before the task was made {_ways(a.versions)}."
    if b.versions and b.versions[-1].direction is None:
        return "The two buffers started with different tasks in this slot."
    return did(b) if kin is Kin.FORWARD else f"A: {did(a)} B: {did(b)}"


def did(own: Own) -> str:
    """What a buffer's run did with the slot, in one sentence: a version it made, a try it refused, or neither."""
    if own.versions:
        if own.versions[-1].direction is None:
            return "It started with another task."
        return f"{_measured(own.versions[-1])}{_critic(own.versions[-1], own.events)}."
    if own.kept is None:
        return "It has no task here."
    # The other buffer may have accepted the same task in another iteration: such an event is no try of this version.
    tries = [event for event in own.events if event.parent_id == own.kept.task.task_id]
    return _tried(tries, own.rule) or _left(own, own.kept)


def _refused(own: Own) -> list[Event]:
    return [event for event in own.events if event.kind in REFUSED]


def _of(name: str, text: str, kin: Kin) -> str:
    """Between two iterations of one run there is one side only that can have tried something."""
    return f"{name}: {text}" if kin is Kin.TWO else text


def _measured(version: Version) -> str:
    way = "harder" if version.direction is Direction.HARDER else "easier"
    before = version.accuracy_before
    start = "It was" if before is None else f"The policy solved {before:.0%}, so it was"
    outcome = "" if version.accuracy is None else f" and solves {version.accuracy:.0%} of it"
    return f"{start} made {way} in iteration {version.iteration}{outcome}"


def _critic(version: Version, events: Sequence[Event]) -> str:
    for event in reversed(events):
        mine = event.task is not None and event.task.task_id == version.task.task_id
        if mine and event.critic:
            said = " ".join(event.critic.split()).rstrip(".")
            return f"; the critic said: {said[:_QUOTED]}{'...' if len(said) > _QUOTED else ''}"
    return ""


def _tried(events: Sequence[Event], rule: AcceptanceRule) -> str:
    """The last of these tries, and why it made no version; '' where there is none."""
    if not events:
        return ""
    last, count = events[-1], sum(event.kind in REFUSED for event in events)
    start, when = f"A try to make it {last.direction}", f"in iteration {last.iteration}"
    if last.kind not in REFUSED:
        return f"{start}, proposed {when}, is pending."
    why = why_refused(last, rule).rstrip(".") or "no reason is recorded"
    if last.kind is EventKind.REJECTED:
        why = f"{share(last.parent_accuracy)} -> {share(last.accuracy)}, {why}"
    more = f" (the last of {count} refused tries)" if count > 1 else ""
    return f"{start} was {last.kind} {when}: {why}{more}."


def _left(own: Own, kept: Version) -> str:
    """Why a version stayed that nothing was to replace, as far as the record tells."""
    start = f"It has v{kept.number}"
    if own.measured is None:
        return f"{start}; no try is recorded."
    if not own.measured:
        return f"{start}, which was never rolled out."
    low, high = own.rule.alpha_low, own.rule.alpha_high
    band = f"its band [{low:.2f}, {high:.2f}]"
    if all(low <= accuracy <= high for accuracy in own.measured):
        return f"{start}, which was never outside {band}."
    return f"{start}, which was outside {band}; no try is recorded."


def _ways(versions: Sequence[Version]) -> str:
    ways = dict.fromkeys(v.direction.value for v in versions if v.direction is not None)
    return " and ".join(ways) or "another one"
