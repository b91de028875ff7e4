"""The verdict on a regime: whether its arms can differ by more than its noise."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class Criterion:
    """One condition. value: what was measured, None for nothing; least: what it must reach."""

    name: str
    value: float | None
    least: float

    @property
    def met(self) -> bool | None:
        """Whether it is reached; None: not measured."""
        return None if self.value is None else self.value >= self.least

    @property
    def text(self) -> str:
        """`perfect votes above outcome, points: 12.4, at least 15 is needed`."""
        value = "not measured" if self.value is None else f"{self.value:.1f}"
        return f"{self.name}: {value}, at least {self.least:g} is needed"


@dataclass(frozen=True)
class Verdict:
    """fit: all criteria are met; False: one is not; None: none fails, but one was not measured."""

    criteria: tuple[Criterion, ...]
    fit: bool | None

    @property
    def text(self) -> str:
        """The verdict in one sentence."""
        failed = [criterion.text for criterion in self.criteria if criterion.met is False]
        missing = [criterion.name for criterion in self.criteria if criterion.met is None]
        if self.fit:
            return "Fit: the arms can differ here by more than the noise."
        if failed:
            return f"Not fit: {'; '.join(failed)}."
        return f"Undecided: not measured: {'; '.join(missing)}."


def judge(criteria: Iterable[Criterion]) -> Verdict:
    """The verdict that follows from the criteria."""
    found = tuple(criteria)
    met = [criterion.met for criterion in found]
    return Verdict(found, False if False in met else None if None in met else True)
