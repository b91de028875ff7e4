"""The trials as a table, and the summary for `dvc metrics show`."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import polars as pl
from optuna.trial import FrozenTrial, TrialState

from rlanything.report.results.statistics import Contrast, Estimate
from rlanything.sweep.declare.space import SETS
from rlanything.sweep.results.comparisons import confirmation, differences, fresh_means
from rlanything.sweep.study.study import LABEL
from rlanything.sweep.trials.board import Board

DIGITS = 5


def table(board: Board) -> pl.DataFrame:
    """One row a trial, by number: state, what it sets, and for every arm and metric the mean and its interval."""
    against = differences(board)
    rows = [_row(board, trial, against.get(trial.number)) for trial in board.study.trials()]
    columns = list(dict.fromkeys(name for row in rows for name in row))
    data = {name: [row.get(name) for row in rows] for name in columns}
    return pl.DataFrame({name: pl.Series(name, _one_type(values)) for name, values in data.items()})


def _one_type(values: list[Any]) -> list[Any]:
    """A column with both numbers and text, as some choices have, becomes text; one of both kinds of numbers, floats."""
    kinds = {type(v) for v in values if v is not None}
    if len(kinds) < 2:
        return values
    # Polars takes the type from the first value, and refuses a float after whole numbers.
    one = float if kinds == {int, float} else str
    return [None if v is None else one(v) for v in values]


def _row(board: Board, trial: FrozenTrial, against: Contrast | None) -> dict[str, Any]:
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
        for metric in measured.panels[arm]:
            found = measured.estimate((arm, metric))
            if found is not None:
                row |= _ends(f"{arm}.{metric}", found)
        row[f"{arm}.band_coverage"] = _rounded(measured.band_coverage[arm])
    if against is not None:
        row |= _ends("above_default", against.difference) | {"above_default.p_holm": against.p}
    return row


def _ends(name: str, found: Estimate) -> dict[str, float | None]:
    return {
        name: _rounded(found.mean),
        f"{name}.low": _rounded(found.low),
        f"{name}.high": _rounded(found.high),
    }


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(float(value), DIGITS) + 0.0


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
    for fresh in fresh_means(board):
        for label in fresh.names:
            found[label]["fresh"] = {name: asdict(e) for name, e in fresh.means.items()}
    found["fresh"] = {
        c.baseline: {"lead": asdict(c.lead), "fresh": asdict(c.fresh), "luck": asdict(c.luck)}
        for c in confirmation(board)
    }
    return found
