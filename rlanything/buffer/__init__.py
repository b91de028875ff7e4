"""The versioned task buffer: slots, versions and events (model), their files (storage), and how they are shown."""

from rlanything.buffer.commands import diff, diff3, drift, export, import_, log, migrate, verify
from rlanything.buffer.event import Event
from rlanything.buffer.eventlog import append_events, read_events
from rlanything.buffer.fields import TaskBufferError
from rlanything.buffer.model import Lineage, TaskBuffer, Version
from rlanything.buffer.runs import RunBuffer, events_path, find_runs, open_run
from rlanything.buffer.storage import read_snapshot, snapshot_path, write_snapshot

__all__ = [
    "Event",
    "Lineage",
    "RunBuffer",
    "TaskBuffer",
    "TaskBufferError",
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
    "migrate",
    "open_run",
    "read_events",
    "read_snapshot",
    "snapshot_path",
    "verify",
    "write_snapshot",
]
