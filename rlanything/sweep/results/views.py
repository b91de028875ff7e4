"""Everything that the page and the report show, gathered once: both draw the same numbers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from rlanything.report.results.statistics import Estimate
from rlanything.sweep.declare.metrics import sign
from rlanything.sweep.declare.parameters import Range
from rlanything.sweep.declare.space import outside
from rlanything.sweep.results.comparisons import Confirmed, FreshMeans, confirmation, fresh_means
from rlanything.sweep.results.contour import Contour, contours
from rlanything.sweep.results.importance import importances
from rlanything.sweep.results.points import Point, drawn_points
from rlanything.sweep.trials.board import Board


@dataclass(frozen=True)
class Views:
    """Everything that is shown of a sweep."""

    name: str
    objectives: tuple[str, ...]
    metrics: tuple[str, ...]
    points: tuple[Point, ...]
    best: int | None
    front: tuple[int, ...]
    """Trials that no other one is better than in every objective (Pareto front of the means)."""
    importances: Mapping[str, Estimate]
    contours: tuple[Contour, ...]
    fresh: tuple[Confirmed, ...]
    fresh_means: tuple[FreshMeans, ...]
    logarithmic: frozenset[str]
    """The keys that are declared on a log scale."""

    @property
    def finished(self) -> list[Point]:
        """The trials with a result."""
        return [p for p in self.points if p.found]

    @property
    def keys(self) -> list[str]:
        """The keys that differ between trials; the paper's trial may be the only one that sets some of them."""
        names = dict.fromkeys(key for point in self.points for key in point.sets)
        return [name for name in names if len({repr(p.sets.get(name)) for p in self.points}) > 1]

    @property
    def varied(self) -> list[str]:
        """Those of `keys` that every trial sets."""
        return [key for key in self.keys if all(key in p.sets for p in self.points)]

    def leader(self) -> list[tuple[int, float]]:
        """(trial, best mean so far) after each finished trial."""
        way, best, line = sign(self.metrics[0]), None, []
        for point in self.finished:
            mean = point.found[0].mean
            best = mean if best is None or way * mean > way * best else best
            line.append((point.number, best))
        return line

    def leads(self) -> list[tuple[str, Estimate]]:
        """The winner's lead over each baseline, named: on the seeds that chose it, then on fresh ones."""
        return [
            (f"above {c.baseline}, {where}", found)
            for c in self.fresh
            for where, found in (("seeds that chose it", c.lead), ("fresh seeds", c.fresh))
        ]


def views(board: Board, name: str) -> Views:
    """Gather everything from a sweep."""
    goals = board.sweep.goals
    points = drawn_points(board)
    best = board.best()
    return Views(
        name,
        board.sweep.objectives,
        tuple(metric for _, metric in goals),
        tuple(points),
        None if best is None else best.number,
        tuple(sorted(trial.number for trial in board.study.study.best_trials)),
        _importances(board),
        tuple(contours(board, points)),
        tuple(confirmation(board)),
        tuple(fresh_means(board)),
        frozenset(key for key, of in board.sweep.space.items() if isinstance(of, Range) and of.log),
    )


def _importances(board: Board) -> Mapping[str, Estimate]:
    """From each point once; a trial that took over another one's result adds nothing."""
    goal = board.sweep.goals[0]
    trials = [
        t
        for t in board.complete()
        if board.source(t.number) == t.number and not outside(board.sweep, t.user_attrs)
    ]
    means = [t.values[0] for t in trials]
    errors = [board.measured(t.number).error(goal) for t in trials]
    return importances(trials, means, errors, sign(goal[1]))
