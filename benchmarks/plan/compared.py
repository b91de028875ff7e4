"""A prediction of the plan, and a measurement."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Compared:
    """A prediction and a measurement, in the unit that its name says."""

    what: str
    predicted: float
    measured: float

    @property
    def ratio(self) -> float:
        """Predicted / measured."""
        return self.predicted / self.measured
