"""The versioned task buffer: slots, versions and events (model), their files (storage), and how they are shown."""

from rlanything.buffer.event import Event
from rlanything.buffer.fields import BufferError
from rlanything.buffer.model import Lineage, TaskBuffer, Version
from rlanything.buffer.storage import append_events, read_events, read_snapshot, rewind_events, write_snapshot

__all__ = [
    "BufferError",
    "Event",
    "Lineage",
    "TaskBuffer",
    "Version",
    "append_events",
    "read_events",
    "read_snapshot",
    "rewind_events",
    "write_snapshot",
]
