"""The versioned task buffer as the training loop needs it: slots, versions and events, and their files.

What people ask of a buffer (log, diff, drift, verify, export) is in `rlanything.buffer.views`. Nothing here imports it,
so a change of a view never invalidates a run.
"""

from rlanything.buffer.event import Event
from rlanything.buffer.eventlog import append_events, events_path, read_events
from rlanything.buffer.fields import TaskBufferError
from rlanything.buffer.model import Lineage, TaskBuffer, Version
from rlanything.buffer.storage import read_snapshot, snapshot_path, write_snapshot

__all__ = [
    "Event",
    "Lineage",
    "TaskBuffer",
    "TaskBufferError",
    "Version",
    "append_events",
    "events_path",
    "read_events",
    "read_snapshot",
    "snapshot_path",
    "write_snapshot",
]
