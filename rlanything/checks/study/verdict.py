"""What the runs say about a hypothesis: it holds, it is refuted, or it stays open."""

from __future__ import annotations

from enum import StrEnum

from rlanything.report.results.statistics import Contrast


class Verdict(StrEnum):
    """What can be said."""

    HOLDS = "holds"
    """The difference is above 0, after the correction."""
    REVERSED = "refuted: the opposite holds"
    """The difference is below 0, after the correction."""
    TOO_SMALL = "refuted: any gain is too small to matter"
    """The whole 95 % interval lies below the smallest difference that would matter."""
    OPEN = "open"
    """Neither: more seeds or games are needed."""
    UNMEASURED = "not measured"
    """An arm of it, or its metric, was not measured."""


def decide(contrast: Contrast | None, alpha: float, smallest: float) -> Verdict:
    """The verdict on one hypothesis.

    Args:
        contrast: how far its arm is above the other; p is corrected.
        alpha: level of the test.
        smallest: the smallest difference that would matter.
    """
    if contrast is None:
        return Verdict.UNMEASURED
    difference = contrast.difference
    if contrast.p is not None and contrast.p < alpha:
        return Verdict.HOLDS if difference.mean > 0 else Verdict.REVERSED
    if difference.high is not None and difference.high < smallest:
        return Verdict.TOO_SMALL
    return Verdict.OPEN
