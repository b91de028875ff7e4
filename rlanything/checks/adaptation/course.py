"""Over a training: how far rewriting has moved the tasks at each point of the learning curves, and what the policy can
do there, beside that of the arm that rewrites nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import inf

from pydantic import BaseModel

from rlanything.report.results import statistics
from rlanything.report.results.curves import Series
from rlanything.report.results.statistics import (
    SHARES,
    Contrast,
    Estimate,
    Limits,
    Panel,
    estimate,
    seed_means,
)

DISTANCES: Limits = (0.0, 2.0)
"""Between which the distance of two tasks can lie."""
TENTH = 0.1
"""Of the slots: for so many replaced ones a slope is given."""


class Point(BaseModel):
    """A point of the learning curves of one seed.

    slots, replaced: all slots of the task buffer, and those whose task is not their first one. words, embedding:
    distance of a slot's task from its first one, mean over all slots. success: arm -> panel -> share of solved tasks.
    """

    iteration: int
    slots: int
    replaced: int
    words: float
    embedding: float
    success: dict[str, dict[str, float]]

    @property
    def share(self) -> float:
        """The share of the slots that were replaced."""
        return self.replaced / self.slots


def measured(curves: Mapping[str, Mapping[str, Series]]) -> dict[int, dict[str, dict[str, float]]]:
    """Iteration -> arm -> panel -> success, where every panel was measured in every arm; from arm -> panel -> curve."""
    known = [set(series) for panels in curves.values() for series in panels.values()]
    return {
        iteration: {
            arm: {panel: series[iteration] for panel, series in panels.items()}
            for arm, panels in curves.items()
        }
        for iteration in sorted(set.intersection(*known) if known else ())
    }


Courses = Mapping[int, Sequence[Point]]
"""seed -> its points."""


@dataclass(frozen=True)
class Success:
    """Success on a panel with rewriting, and how far it is above that without; None where nothing is compared."""

    arm: Estimate | None
    difference: Estimate | None


@dataclass(frozen=True)
class Moment:
    """A point of the learning curves over all seeds. success: by panel."""

    iteration: int
    replaced: Estimate | None
    words: Estimate | None
    embedding: Estimate | None
    success: Mapping[str, Success]


@dataclass(frozen=True)
class Trend:
    """How the difference between the arms on a panel goes with the replaced slots. Its p is Holm's over the panels.

    slope: for a tenth of the slots, of a line through the start, where no slot is replaced and both arms have the same
    policy; mean over the seeds that replaced some. It says how far the arms differ for so many slots. A difference that
    does not grow has a slope too.
    """

    panel: str
    slope: Contrast | None


def moments(courses: Courses, arms: Sequence[str]) -> tuple[Moment, ...]:
    """What all seeds say at each point. arms: the one that rewrites, and the one that it is compared with."""
    iterations = sorted({point.iteration for points in courses.values() for point in points})
    return tuple(_moment(iteration, courses, arms) for iteration in iterations)


def trends(courses: Courses, arms: Sequence[str]) -> tuple[Trend, ...]:
    """The trend on each panel; nothing where no arm is compared."""
    if len(arms) < 2:
        return ()
    asked = {panel: _trend(courses, arms, panel) for panel in _panels(courses, arms[0])}
    known = statistics.corrected({panel: found for panel, found in asked.items() if found is not None})
    return tuple(Trend(panel, known.get(panel)) for panel in asked)


def _moment(iteration: int, courses: Courses, arms: Sequence[str]) -> Moment:
    there = {seed: [p for p in points if p.iteration == iteration] for seed, points in courses.items()}

    def of(value: Callable[[Point], float], limits: Limits) -> Panel | None:
        return seed_means(
            {seed: [value(point) for point in points] for seed, points in there.items()}, limits
        )

    def solved(arm: str, panel: str) -> Panel | None:
        return of(lambda point: point.success[arm][panel], SHARES)

    def success(panel: str) -> Success:
        own, *others = (solved(arm, panel) for arm in arms)
        difference = statistics.contrast(own, others[0]) if others and own and others[0] else None
        return Success(estimate(own), difference.difference if difference else None)

    return Moment(
        iteration,
        estimate(of(lambda point: point.share, SHARES)),
        estimate(of(lambda point: point.words, DISTANCES)),
        estimate(of(lambda point: point.embedding, DISTANCES)),
        {panel: success(panel) for panel in _panels(courses, arms[0])},
    )


def _panels(courses: Courses, arm: str) -> list[str]:
    found = (panel for points in courses.values() for point in points for panel in point.success[arm])
    return list(dict.fromkeys(found))


def _trend(courses: Courses, arms: Sequence[str], panel: str) -> Contrast | None:
    """The mean slope of all seeds against none; p is not corrected yet."""
    arm, against = arms
    slopes = {
        seed: slope(
            [point.share for point in points],
            [point.success[arm][panel] - point.success[against][panel] for point in points],
        )
        for seed, points in courses.items()
    }
    found = {seed: [TENTH * value] for seed, value in slopes.items() if value is not None}
    own, none = seed_means(found, (-inf, inf)), seed_means({seed: [0.0] for seed in found}, (0.0, 0.0))
    return statistics.contrast(own, none) if own and none else None


def slope(x: Sequence[float], y: Sequence[float]) -> float | None:
    """Least squares of y on x through the origin; None where all x are 0."""
    squares = sum(a * a for a in x)
    return sum(a * b for a, b in zip(x, y, strict=True)) / squares if squares else None
