"""Charts of the final checkpoints: how far each arm is above the base, and success against the steps allowed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from rlanything.config import BASE
from rlanything.report.contents import Contents
from rlanything.report.drawn.canvas import Chart, Row, empty, label, legend, not_measured
from rlanything.report.results.arms import ordered
from rlanything.report.results.comparison import Cells
from rlanything.report.results.metrics import Metric
from rlanything.report.results.paper import Paper
from rlanything.report.style import INK, Look, looks

GAINS = "gains"
"""Name of the figure of differences from the base."""
STEPS = "steps"
"""Name of the figure of success against the number of steps allowed."""
Within = Mapping[str, Mapping[str, list[list[float]]]]
"""arm -> panel -> success at limits of 1, 2, ... steps, for each seed."""


def gains_chart(cells: Cells, contents: Contents) -> Chart:
    """Difference from the base with its interval, and the paper's as a hollow marker."""
    arms = [arm for arm in cells if arm != BASE]
    rows = [row for metric in contents.shares for arm in arms for row in _gains(arm, metric, cells, contents)]
    return Chart(GAINS, rows, partial(_above, arms, cells, contents))


def _above(arms: list[str], cells: Cells, contents: Contents) -> Figure:
    width, height = max(9.6, 1.92 * len(contents.shares)), 1.1 + 0.34 * max(2, len(arms))
    figure, axes = empty(width, height, len(contents.shares))
    for axis, metric in zip(axes, contents.shares, strict=True):
        axis.set_title(metric.short[0].upper() + metric.short[1:])
        axis.grid(axis="x")
        axis.grid(visible=False, axis="y")
        axis.axvline(0, color=INK, lw=1.0)
        axis.set_yticks(range(len(arms)), [label(a) for a in arms] if axis is axes[0] else [""] * len(arms))
        axis.set_ylim(len(arms) - 0.4, -0.6)
        for row, arm in enumerate(arms):
            _gain(axis, row, arm, metric, cells, contents.paper)
    hollow = f" (hollow: {contents.paper.name})" if contents.paper.shown else ""
    figure.supxlabel(f"points above the base, 95 % interval{hollow}", fontsize=9)
    return figure


def _gain(axis: Axes, row: int, arm: str, metric: Metric, cells: Cells, paper: Paper) -> None:
    look, theirs = looks(list(cells))[arm], paper.gain(arm, metric)
    cell = cells[arm].get(metric.name)
    if cell is not None and cell.difference is not None:
        low, mean, high = cell.difference.low, cell.difference.mean, cell.difference.high
        if low is not None and high is not None:
            axis.plot([100 * low, 100 * high], [row, row], color=look.colour, lw=2)
        axis.plot([100 * mean], [row], marker=look.marker, color=look.colour, markersize=6)
    if theirs is not None:
        axis.plot(
            [100 * theirs], [row - 0.27], marker=look.marker, mfc="none", mec=look.colour, markersize=5, ls=""
        )


def _gains(arm: str, metric: Metric, cells: Cells, contents: Contents) -> Iterator[Row]:
    cell, theirs = cells[arm].get(metric.name), contents.paper.gain(arm, metric)
    if cell is not None and cell.difference is not None:
        found = cell.difference
        yield metric.name, arm, "above the base", "", found.mean, found.low, found.high
    if theirs is not None:
        yield metric.name, arm, "paper", "", theirs, None, None


def steps_chart(within: Within, contents: Contents, cells: Cells) -> Chart:
    """Success of the final checkpoints against the number of steps allowed, the mean over seeds with their range."""
    panels = [metric for metric in contents.shares if metric.is_success]
    rows = [row for metric in panels for row in _limits(metric.name, within)]
    return Chart(STEPS, rows, partial(_steps, panels, within, contents, ordered([*cells, *within])))


def _steps(panels: list[Metric], within: Within, contents: Contents, shown: list[str]) -> Figure:
    figure, axes = empty(4.6 * len(panels) + 0.4, 3.6, len(panels), level=True)
    for axis, metric in zip(axes, panels, strict=True):
        axis.set_title(f"{contents.title(metric)} (%)")
        axis.set_xlabel("steps allowed")
        axis.xaxis.set_major_locator(MaxNLocator(6, integer=True))
        drawn = [arm for arm in shown if metric.name in within.get(arm, {})]
        for arm in drawn:
            _success(axis, within[arm][metric.name], looks(shown)[arm])
        if not drawn:
            not_measured(axis)
    legend(figure, [arm for arm in shown if arm in within], shown)
    return figure


def _success(axis: Axes, seeds: Sequence[Sequence[float]], look: Look) -> None:
    """One arm: a line through the means over seeds, and a band from the lowest to the highest."""
    limits = range(1, len(seeds[0]) + 1)
    columns = [[100.0 * rate for rate in column] for column in zip(*seeds, strict=True)]
    means = [sum(column) / len(column) for column in columns]
    axis.plot(
        limits, means, look.line, color=look.colour, marker=look.marker, markersize=4,
        markevery=max(1, len(means) // 8),
    )  # fmt: skip
    axis.fill_between(
        limits, [min(c) for c in columns], [max(c) for c in columns], color=look.colour, alpha=0.15, lw=0
    )


def _limits(panel: str, within: Within) -> Iterator[Row]:
    for arm, panels in within.items():
        for number, rates in enumerate(panels.get(panel, [])):
            for limit, rate in enumerate(rates, start=1):
                yield panel, arm, f"curve {number}", limit, rate, None, None
