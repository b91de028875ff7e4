"""What the runs say about a hypothesis: it holds, it is refuted, or it stays open.

Two families of tests are corrected by Holm, each over all hypotheses of the study: that the difference is 0, and that
it is the smallest difference that would matter.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from rlanything.report.results import statistics
from rlanything.report.results.statistics import Contrast, Panel

Pair = tuple[Panel, Panel]
"""The results of the arm of a hypothesis, and of the other one."""


class Verdict(StrEnum):
    """What can be said."""

    HOLDS = "holds"
    """The difference is above 0."""
    SMALL = "holds, but too small to matter"
    """The difference is above 0, and below the smallest one that would matter."""
    TOO_SMALL = "refuted: too small to matter"
    """The difference is below the smallest one that would matter, and may be 0."""
    REVERSED = "refuted: the opposite holds"
    """The difference is below 0."""
    OPEN = "open"
    """None of these is shown."""
    UNMEASURED = "not measured"
    """Nothing was measured that could be compared."""


@dataclass(frozen=True)
class Tested:
    """Both tests of one hypothesis.

    contrast: how far its arm is above the other; p is corrected. p_smallest: corrected p of the difference being the
    smallest one that would matter. None: no such test.
    """

    contrast: Contrast | None
    p_smallest: float | None
    smallest: float

    def verdict(self, alpha: float) -> Verdict:
        """The verdict at a level."""
        if self.contrast is None:
            return Verdict.UNMEASURED
        mean, p = self.contrast.difference.mean, self.contrast.p
        clear = p is not None and p < alpha
        below = self.p_smallest is not None and self.p_smallest < alpha and mean < self.smallest
        if clear and mean < 0:
            return Verdict.REVERSED
        if clear:
            return Verdict.SMALL if below else Verdict.HOLDS
        return Verdict.TOO_SMALL if below else Verdict.OPEN


def both_tests(pairs: Mapping[str, Pair | None], smallest: Mapping[str, float]) -> dict[str, Tested]:
    """Hypothesis -> its tests. pairs: None where an arm was not measured.

    A hypothesis without a p counts in the correction as one that shows nothing: the family does not shrink.
    """
    zero = _holm({name: _p(pair, 0.0) for name, pair in pairs.items()})
    least = _holm({name: _p(pair, smallest[name]) for name, pair in pairs.items()})
    found = {}
    for name, pair in pairs.items():
        contrast = None if pair is None else statistics.contrast(*pair)
        if contrast is not None:
            contrast = Contrast(contrast.difference, zero[name])
        found[name] = Tested(contrast, least[name], smallest[name])
    return found


def _holm(p: Mapping[str, float | None]) -> dict[str, float | None]:
    found = statistics.holm({name: 1.0 if value is None else value for name, value in p.items()})
    return {name: None if p[name] is None else value for name, value in found.items()}


def _p(pair: Pair | None, difference: float) -> float | None:
    """Two-sided p of the true difference being this one. None where nothing varies: equal seeds prove nothing."""
    cells = None if pair is None else statistics.differences(*pair)
    if cells is None:
        return None
    spread = statistics.spread(cells)
    return None if spread is None or spread.variance == 0.0 else statistics.p_value(cells - difference)
