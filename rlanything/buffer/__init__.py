"""The versioned task buffer: slots, versions and events (model), their files (storage), and how they are shown."""

from rlanything.buffer.commands import diff, diff3, drift, export, import_, log, verify
from rlanything.buffer.event import Event
from rlanything.buffer.fields import BufferError
from rlanything.buffer.model import Lineage, TaskBuffer, Version
from rlanything.buffer.runs import RunBuffer, events_path, find_runs, open_run, snapshot_path
from rlanything.buffer.storage import append_events, read_events, read_snapshot, write_snapshot

__all__ = [
    "BufferError",
    "Event",
    "Lineage",
    "RunBuffer",
    "TaskBuffer",
    "Version",
    "append_events",
    "diff",
    "diff3",
    "drift",
    "events_path",
    "export",
    "find_runs",
    "import_",
    "log",
    "open_run",
    "read_events",
    "read_snapshot",
    "snapshot_path",
    "verify",
    "write_snapshot",
]
