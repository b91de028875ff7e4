"""What happened to the task of every slot: its versions, and all proposals with what became of them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from rlanything.buffer.views.find.runs import RunBuffer
from rlanything.core.types import Json

FILES = 64


def history(buffers: RunBuffer) -> Iterator[tuple[int, dict[str, Json]]]:
    """(number, content) of each file; slot s is in file s modulo `FILES`. By slot: versions and events, in order."""
    events = defaultdict(list)
    for event in buffers.events:
        events[event.slot].append(event.to_json())
    found: dict[int, dict[str, Json]] = defaultdict(dict)
    for lineage in buffers.latest.lineages:
        found[lineage.slot % FILES][str(lineage.slot)] = {
            "versions": [version.to_json() for version in lineage.versions],
            "events": events[lineage.slot],
        }
    yield from sorted(found.items())
