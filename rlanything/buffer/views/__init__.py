"""What people ask of a task buffer: list, show, log, diff, drift, verify, export, import.

Every function takes buffers by name and returns plain JSON values, those that `--json` prints. Training never imports
this package.
"""

from rlanything.buffer.views.commands import diff, diff3, drift, export, import_, log, ls, show, verify

__all__ = ["diff", "diff3", "drift", "export", "import_", "log", "ls", "show", "verify"]
