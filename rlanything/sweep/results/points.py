"""A trial with everything that figures and tables show of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from optuna.trial import TrialState

from rlanything.report.results.statistics import Contrast, Estimate
from rlanything.sweep.declare.parameters import Value
from rlanything.sweep.declare.space import SETS
from rlanything.sweep.results.comparisons import differences
from rlanything.sweep.study.study import LABEL
from rlanything.sweep.trials.board import Board


@dataclass(frozen=True)
class Point:
    """A trial as it is drawn. `found`: an estimate for every objective; empty for a trial without a result."""

    number: int
    label: str
    state: str
    sets: Mapping[str, Value]
    found: tuple[Estimate, ...] = ()
    difference: Contrast | None = None
    band_coverage: float | None = None
    accepted: Estimate | None = None

    @property
    def name(self) -> str:
        """`3`, or `0 (paper)`."""
        return f"{self.number} ({self.label})" if self.label else str(self.number)


def drawn_points(board: Board) -> list[Point]:
    """All trials, by number."""
    against = differences(board)
    arm = board.sweep.goals[0][0]
    found = []
    for trial in board.study.trials():
        number, state = trial.number, trial.state.name.lower()
        sets, label = trial.user_attrs.get(SETS, {}), trial.user_attrs.get(LABEL, "")
        if trial.state == TrialState.PRUNED:
            state = f"pruned after {len(trial.intermediate_values)} points"
        if trial.state != TrialState.COMPLETE:
            found.append(Point(number, label, state, sets))
            continue
        measured = board.measured(number)
        estimates = tuple(e for goal in board.sweep.goals if (e := measured.estimate(goal)) is not None)
        accepted = measured.estimate((arm, "accepted_tasks"))
        coverage = measured.band_coverage[arm]
        found.append(Point(number, label, state, sets, estimates, against.get(number), coverage, accepted))
    return found
