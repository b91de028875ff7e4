"""Charts of the votes against what came of episodes: is success more frequent after good votes, do votes flatter."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from rlanything.report.drawn.canvas import Chart, Row, empty, legend, not_measured
from rlanything.report.results.arms import ordered
from rlanything.report.results.comparison import Cells
from rlanything.report.results.curves import RECENT, Curves, Run
from rlanything.report.results.votes import LEVELS, Level, Votes, levels
from rlanything.report.style import looks

CALIBRATION = "calibration"
"""Name of the figure of success by share of good votes."""
HACKING = "votes_and_outcomes"
"""Name of the figure of mean votes against verified outcomes."""
ENDS = ("start", "end")


def calibration_chart(votes: Votes, cells: Cells) -> Chart:
    """Share of the steps whose episode succeeds, by their share of good votes, at the start and the end of the runs."""
    rows = [
        (end, arm, "all seeds", x, level.right / level.steps, None, None)
        for end in ENDS
        for arm in votes
        for x, level in by_level(votes, arm, end)
        if level.steps
    ]
    return Chart(CALIBRATION, rows, partial(_calibration, votes, ordered([*cells, *votes])))


def _calibration(votes: Votes, shown: list[str]) -> Figure:
    figure, axes = empty(9.6, 3.6, len(ENDS), level=True)
    for axis, end in zip(axes, ENDS, strict=True):
        axis.set_title(f"Steps of successes (%), {_when(end)} {RECENT} iterations")
        axis.set_xlabel("good votes on the step")
        axis.set_xticks(range(len(LEVELS)), [name.replace(" than ", " than\n") for name in LEVELS])
        axis.set_xlim(-0.3, len(LEVELS) - 0.7)
        for arm in votes:
            found = [(x, level) for x, level in by_level(votes, arm, end) if level.steps]
            look = looks(shown)[arm]
            axis.plot(
                [x for x, _ in found], [100.0 * level.right / level.steps for _, level in found], look.line,
                color=look.colour, marker=look.marker, markersize=5,
            )  # fmt: skip
        if not votes:
            not_measured(axis)
    legend(figure, list(votes), shown)
    return figure


def _when(end: str) -> str:
    return "first" if end == "start" else "last"


def by_level(votes: Votes, arm: str, end: str) -> list[tuple[int, Level]]:
    """(number of one of `LEVELS`, the steps of it) of an arm, all seeds together."""
    return list(enumerate(levels(getattr(run, end) for run in votes[arm].values())))


def hacking_chart(curves: Curves, votes: Votes, cells: Cells) -> Chart:
    """Mean vote against success: a point for each iteration, and one for each task at the end of the runs."""
    of_iterations, of_tasks = list(_iterations(curves)), list(_tasks(votes))
    rows = [*(row for _, row in of_iterations), *of_tasks]
    iterations = [*(i for i, _ in of_iterations), *(None for _ in of_tasks)]
    return Chart(HACKING, rows, partial(_hacking, rows, ordered([*curves, *cells])), iterations)


def _hacking(rows: list[Row], shown: list[str]) -> Figure:
    figure, (left, right) = empty(9.6, 4.2, 2, level=True)
    for axis, panel, title in ((left, "iteration", "iterations"), (right, "task", f"tasks, last {RECENT}")):
        axis.set_title(f"Mean vote on a step, {title}" + (" iterations" if panel == "task" else ""))
        axis.set_xlabel("success (%)")
        axis.set_xlim(-4, 104)
        axis.set_ylim(-1.08, 1.08)
        _points(axis, [row for row in rows if row[0] == panel], shown)
    drawn = {row[1] for row in rows}
    legend(figure, [arm for arm in shown if arm in drawn], shown)
    return figure


def _points(axis: Axes, rows: list[Row], shown: list[str]) -> None:
    for arm in shown:
        found = [row for row in rows if row[1] == arm]
        look = looks(shown)[arm]
        axis.plot(
            [100.0 * float(row[3]) for row in found], [row[4] for row in found], ls="", marker=look.marker,
            markersize=4, color=look.colour, alpha=0.4, mew=0,
        )  # fmt: skip
    if not rows:
        not_measured(axis)


def _iterations(curves: Curves) -> Iterator[tuple[int, Row]]:
    """Each iteration with its point."""
    for arm, runs in curves.items():
        for seed, run in runs.items():
            for iteration, accuracy, vote in _pairs(run):
                yield iteration, ("iteration", arm, f"seed {seed}", accuracy, vote, None, None)


def _pairs(run: Run) -> Iterator[tuple[int, float, float]]:
    accuracy = run.get("accuracy", {})
    return ((i, accuracy[i], vote) for i, vote in run.get("mean_vote", {}).items() if i in accuracy)


def _tasks(votes: Votes) -> Iterator[Row]:
    for arm, runs in votes.items():
        for seed, run in runs.items():
            for (slot, _), task in run.end.tasks.items():
                yield "task", arm, f"seed {seed} slot {slot}", task.success, task.vote, None, None
