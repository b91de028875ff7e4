"""The lines that a worker prints: results of one trial, progress of the sweep, time left."""

from __future__ import annotations

from collections.abc import Mapping

from optuna.trial import TrialState

from rlanything.report.formatting import NONE
from rlanything.sweep.declare.metrics import format_estimate
from rlanything.sweep.trials.board import Board
from rlanything.sweep.trials.measure import Measured

BASELINES_AND_WINNER = 3


def results_text(board: Board, measured: Measured | None) -> str:
    """Every objective with its interval."""
    parts = []
    for name, goal in zip(board.sweep.objectives, board.sweep.goals, strict=True):
        found = None if measured is None else measured.estimate(goal)
        parts.append(f"{name} {NONE if found is None else format_estimate(found, goal[1])}")
    return ", ".join(parts)


def status_line(board: Board, running: Mapping[int, float], slots: int) -> str:
    """How many trials have ended, the best so far, what runs, and how long it will take.

    Args:
        board: the sweep.
        running: number -> share that is done, of this worker's trials.
        slots: trials that this worker runs at once.
    """
    states = [t.state for t in board.study.trials()]
    pruned, crashed = states.count(TrialState.PRUNED), states.count(TrialState.FAIL)
    limit = board.study.limit
    line = f"{len(board.ended())}{'' if limit is None else f'/{limit}'} trials"
    extra = [f"{count} {what}" for count, what in ((pruned, "pruned"), (crashed, "crashed")) if count]
    line += f" ({', '.join(extra)})" if extra else ""
    best = board.best()
    if best is not None:
        line += f", best {best.number}: {results_text(board, board.measured(best.number))}"
    if running:
        line += ", running " + " ".join(f"{n} ({share:.0%})" for n, share in running.items())
    return line + _time_left(board, running, slots)


def _time_left(board: Board, running: Mapping[int, float], slots: int) -> str:
    """From what finished trials took; a run on fresh seeds counts by its seeds."""
    took = [t.user_attrs["seconds"] for t in board.complete() if t.user_attrs.get("seconds")]
    if not took or board.is_over():
        return ""
    each = sum(took) / len(took)
    again = len(board.to_confirm()) if board.trials_over() else BASELINES_AND_WINNER
    fresh = again * each * board.sweep.confirm / board.sweep.seeds
    trials = max(0.0, _seconds_for_trials(board, each) - sum(running.values()) * each)
    return f", about {round((trials + fresh) / slots / 60)} min left"


def _seconds_for_trials(board: Board, each: float) -> float:
    """Seconds of work that the budget still has for trials of `each` seconds, those that run included."""
    limit, minutes = board.study.limit, board.sweep.budget.minutes
    trials = float("inf") if limit is None else (limit - len(board.ended())) * each
    found = min(trials, float("inf") if minutes is None else 60 * minutes - board.spent_s())
    return max(found, board.sure_to_end() * each)
