"""Why a sweep cannot go on. What it has finished is kept, and published where that replaces no other results."""

from __future__ import annotations

from rlanything.core.errors import MachineError, RLAnythingError, UserError


class SweepError(RLAnythingError):
    """The sweep cannot go on; the message says why."""


class ProjectChanged(SweepError, UserError):
    """Code, configuration or inputs changed while the sweep ran, so its trials cannot be compared."""


class SweepStopped(SweepError, MachineError):
    """Trials crash one after the other, or the database that holds the study refuses."""
