"""How many bytes the snapshots of a run take: all whole, and as they are written (see `buffer.storage`)."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from rlanything.buffer.event import Event
from rlanything.buffer.model import TaskBuffer
from rlanything.buffer.storage import snapshot_path, write_snapshot
from rlanything.buffer.views.find.runs import open_run
from rlanything.core.types import Direction, EventKind, Task


@dataclass(frozen=True)
class Sizes:
    """Bytes of a run's snapshots, in all."""

    snapshots: int
    slots: int
    whole: int
    shared: int

    def __str__(self) -> str:
        counts = f"{self.snapshots} snapshots of {self.slots} slots"
        share = self.shared / self.whole
        return f"{counts}: {self.whole} bytes whole, {self.shared} as they are written ({share:.1%})"


def sizes_of(run: Path) -> Sizes:
    """Of a run on disk. Raises `TaskBufferError`."""
    opened = open_run(run)
    return _sizes((opened.at(n), opened.header(n).events) for n in opened.iterations)


def sizes_of_generated(slots: int, iterations: int, share: float) -> Sizes:
    """Of a run in which every iteration gives `share` of the slots another task, and as many a try that fails."""
    return _sizes((buffer, None) for buffer in _story(slots, iterations, max(1, round(share * slots))))


def _sizes(buffers: Iterator[tuple[TaskBuffer, str | None]]) -> Sizes:
    start, count, whole, shared = None, 0, 0, 0
    with tempfile.TemporaryDirectory() as folder:
        path = snapshot_path(Path(folder), 0)
        for buffer, events in buffers:
            count += 1
            write_snapshot(buffer, path, events=events)
            whole += path.stat().st_size
            write_snapshot(buffer, path, start, events=events)
            shared += path.stat().st_size
            start = start or buffer
    return Sizes(count, len(start or ()), whole, shared)


def _story(slots: int, iterations: int, moved: int) -> Iterator[TaskBuffer]:
    buffer = TaskBuffer.start(_task(slot, 0) for slot in range(slots))
    yield buffer
    for iteration in range(iterations):
        touched = [(iteration * 2 * moved + k) % slots for k in range(2 * moved)]
        buffer = buffer.apply(
            _event(buffer, slot, iteration, accepted=k % 2 == 0)
            for k, slot in enumerate(dict.fromkeys(touched))
        )
        yield buffer


def _event(buffer: TaskBuffer, slot: int, iteration: int, *, accepted: bool) -> Event:
    kind = EventKind.ACCEPTED if accepted else EventKind.REJECTED
    parent, after = buffer.head(slot).task_id, 0.5 if accepted else 0.0
    return Event(kind, slot, iteration, Direction.HARDER, parent, 1.0, _task(slot, 1 + iteration), after)


def _task(slot: int, version: int) -> Task:
    payload = {"goal": {"object": "mug", "place": "shelf"}, "room": slot, "step": version}
    return Task("bench", f"put {version + 1} mug of room {slot} on the shelf", payload)
