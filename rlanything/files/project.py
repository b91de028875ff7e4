"""What a project's folder holds under a fixed name. Imported by every command, so it imports nothing of ours."""

from __future__ import annotations

import re
from pathlib import Path

PARAMS = "params.yaml"
"""The configuration."""
PRIVATE = ".rla"
"""What the project keeps for itself, and the workspaces."""
DECLARED = re.compile(r"[a-z0-9][a-z0-9_-]*")
"""A name that a sweep or a check may have: that of its file, and of its folder."""
SWEEP_NAME, SWEEP_EMAIL = "rlanything sweep", "sweep@localhost"
"""The author of commits that record a sweep's trials. They hold a trial's parameters and summary, and no run of it."""


def workspaces(root: Path) -> list[str]:
    """The names of the project's workspaces."""
    return sorted(path.parent.name for path in (root / PRIVATE).glob(f"*/{PARAMS}"))
