"""The trials as a table, the summary for `dvc metrics show`, and what fresh seeds say about the winner."""

from __future__ import annotations

import math
from collections.abc import Set
from dataclasses import asdict, dataclass
from typing import Any

import polars as pl
from optuna.trial import FrozenTrial, TrialState

from rlanything.report.statistics import Contrast, Estimate, holm
from rlanything.sweep.board import Board
from rlanything.sweep.declare import METRICS
from rlanything.sweep.objective import RESAMPLES
from rlanything.sweep.space import SETS
from rlanything.sweep.study import LABEL

DIGITS = 5
RESAMPLES_EACH = 100
"""Resamples for each point that is compared: no p is below 1 / resamples, and Holm multiplies it by the points."""


def table(board: Board) -> pl.DataFrame:
    """One row a trial, by number: state, what it sets, and for every arm and metric the mean and its interval."""
    against = differences(board)
    rows = [_row(board, trial, against.get(trial.number)) for trial in board.study.trials()]
    columns = list(dict.fromkeys(name for row in rows for name in row))
    data = {name: [row.get(name) for row in rows] for name in columns}
    return pl.DataFrame({name: pl.Series(name, _one_type(values)) for name, values in data.items()})


def _one_type(values: list[Any]) -> list[Any]:
    """A column that holds numbers and words, as some choices do, becomes words."""
    kinds = {type(v) for v in values if v is not None}
    return (
        values if len(kinds) < 2 or kinds <= {int, float} else [None if v is None else str(v) for v in values]
    )


def _row(board: Board, trial: FrozenTrial, against: Difference | None) -> dict[str, Any]:
    row: dict[str, Any] = {
        "trial": trial.number,
        "label": trial.user_attrs.get(LABEL) or None,
        "state": trial.state.name.lower(),
        **trial.user_attrs.get(SETS, {}),
        "points": len(trial.intermediate_values) or None,
        "seconds": _rounded(trial.user_attrs.get("seconds")),
        "same_as": trial.user_attrs.get("same_as"),
        "error": trial.user_attrs.get("error"),
    }
    if trial.state != TrialState.COMPLETE:
        return row
    measured = board.measured(trial.number)
    for arm in board.sweep.arms:
        for metric in METRICS:
            found = measured.estimate((arm, metric)) if metric in measured.panels[arm] else None
            if found is not None:
                row |= _ends(f"{arm}.{metric}", found)
        row[f"{arm}.band_coverage"] = _rounded(measured.band_coverage[arm])
    if against is not None:
        row |= _ends("above_default", against.contrast.difference) | {"above_default.p_holm": against.p}
    return row


def _ends(name: str, found: Estimate) -> dict[str, float | None]:
    return {
        name: _rounded(found.mean),
        f"{name}.low": _rounded(found.low),
        f"{name}.high": _rounded(found.high),
    }


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(float(value), DIGITS) + 0.0


@dataclass(frozen=True)
class Difference:
    """A trial against the project's default, on the first objective; `p` is Holm's over all different points."""

    contrast: Contrast
    p: float | None


def differences(board: Board) -> dict[int, Difference]:
    """Number -> difference, for every finished trial but the default itself."""
    default = board.baselines().get("default")
    if default is None:
        return {}
    sources = {t.number: board.source(t.number) for t in board.complete()}
    compared = _compared(board, default, set(sources.values()))
    return {n: compared[source] for n, source in sources.items() if source in compared}


def _compared(board: Board, default: int, sources: Set[int]) -> dict[int, Difference]:
    """Every point once: a trial that took over another's result is no further comparison, and has that one's p."""
    goal, base = board.sweep.goals[0], board.measured(default)
    resamples = max(RESAMPLES, RESAMPLES_EACH * len(sources))
    found = {
        n: c
        for n in sorted(sources - {board.source(default)})
        if (c := board.measured(n).above(base, goal, resamples)) is not None
    }
    corrected = holm({str(n): c.p for n, c in found.items() if c.p is not None})
    return {n: Difference(c, corrected.get(str(n))) for n, c in found.items()}


@dataclass(frozen=True)
class Confirmed:
    """The winner against one baseline: its lead on the seeds that chose it, and on fresh ones.

    `luck` is the part of the lead that fresh seeds did not show, with the interval of a difference between two
    estimates that each have one (MOVER; Zou and Donner, 2008); taken as independent, which makes it rather too wide.
    """

    objective: str
    winner: int
    baseline: str
    against: int
    lead: Estimate
    fresh: Estimate
    mean: Estimate
    fresh_mean: Estimate

    @property
    def luck(self) -> Estimate:
        """Lead on the choosing seeds minus lead on the fresh ones."""
        mean = self.lead.mean - self.fresh.mean
        low, high, fresh_low, fresh_high = self.lead.low, self.lead.high, self.fresh.low, self.fresh.high
        if low is None or high is None or fresh_low is None or fresh_high is None:
            return Estimate(mean, None, None)
        below = math.hypot(self.lead.mean - low, fresh_high - self.fresh.mean)
        above = math.hypot(high - self.lead.mean, self.fresh.mean - fresh_low)
        return Estimate(mean, mean - below, mean + above)

    def row(self) -> dict[str, Any]:
        """As JSON."""
        return {**asdict(self), "luck": asdict(self.luck)}


def confirmation(board: Board) -> list[Confirmed]:
    """The winner beside each baseline; empty without fresh seeds, or where the winner is the baseline itself."""
    best = board.best()
    if best is None:
        return []
    found = []
    winner = board.source(best.number)
    for label, number in board.baselines().items():
        against = board.source(number)
        if against != winner:
            compared = _confirmed(board, winner, label, against)
            found += [compared] if compared is not None else []
    return found


def _confirmed(board: Board, winner: int, label: str, number: int) -> Confirmed | None:
    goal = board.sweep.goals[0]
    fresh, other = board.measured_fresh(winner), board.measured_fresh(number)
    if fresh is None or other is None:
        return None
    lead = board.measured(winner).above(board.measured(number), goal)
    again = fresh.above(other, goal)
    mean, fresh_mean = board.measured(winner).estimate(goal), fresh.estimate(goal)
    if lead is None or again is None or mean is None or fresh_mean is None:
        return None
    return Confirmed(
        board.sweep.objectives[0], winner, label, number, lead.difference, again.difference, mean, fresh_mean
    )


def summary(board: Board) -> dict[str, Any]:
    """For `dvc metrics show`: counts, and the best trial and the baselines with their intervals."""
    states = [t.state.name.lower() for t in board.study.trials()]
    found: dict[str, Any] = {"trials": {state: states.count(state) for state in sorted(set(states))}}
    best = board.best()
    named = {**board.baselines(), **({"best": best.number} if best is not None else {})}
    for label, number in named.items():
        measured = board.measured(number)
        goals = zip(board.sweep.objectives, board.sweep.goals, strict=True)
        means = {name: asdict(e) for name, goal in goals if (e := measured.estimate(goal)) is not None}
        found[label] = {"trial": number, **means}
    found["fresh"] = {
        c.baseline: {"lead": asdict(c.lead), "fresh": asdict(c.fresh), "luck": asdict(c.luck)}
        for c in confirmation(board)
    }
    return found
