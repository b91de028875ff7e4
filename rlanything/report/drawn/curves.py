"""Curves over iterations, one panel each.

Lines are means over seeds, bands go from the lowest to the highest seed. What was measured while training (on the small
curve panels) is a line; the final checkpoint on the full panels, with its 95 % interval, is a marker at the end.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator, ScalarFormatter

from rlanything.config import BASE
from rlanything.report.declared_figures import Drawing, Plot
from rlanything.report.drawn.canvas import Chart, Row, empty, legend, not_measured
from rlanything.report.results.arms import ordered
from rlanything.report.results.comparison import Cells
from rlanything.report.results.curves import Curves, Run, mean_series
from rlanything.report.results.statistics import Estimate
from rlanything.report.style import INK, PALE, looks


def curves_chart(drawing: Drawing, curves: Curves, cells: Cells) -> Chart:
    """The chart of a declared figure; a panel without data says so."""
    plots, shown = drawing.plots, ordered([*curves, *cells])
    chosen = [arm for arm in shown if arm in drawing.arms or arm == BASE] if drawing.arms else shown
    finals = {arm: cells.get(arm, {}) for arm in chosen}
    rows = [row for plot in plots for row in _rows(plot, curves, finals)]
    return Chart(drawing.name, rows, partial(_figure, plots, curves, finals, shown))


def _figure(plots: Sequence[Plot], curves: Curves, cells: Cells, shown: list[str]) -> Figure:
    """A panel for each plot, of the arms of `cells`."""
    same_unit = all(plot.final and plot.percent for plot in plots)
    figure, axes = empty(4.6 * len(plots) + 0.4, 3.6, len(plots), level=same_unit)
    drawn: set[str] = set()
    for axis, plot in zip(axes, plots, strict=True):
        drawn |= _panel(axis, plot, curves, cells, shown)
    legend(figure, [arm for arm in shown if arm in drawn], shown)
    return figure


def _panel(axis: Axes, plot: Plot, curves: Curves, cells: Cells, shown: list[str]) -> set[str]:
    """Draw one panel of the arms of `cells`; returns those that it shows."""
    axis.set_title(plot.title)
    axis.set_xlabel("iteration")
    if plot.log:
        axis.set_yscale("log")
        axis.yaxis.set_major_formatter(ScalarFormatter())
        axis.yaxis.set_minor_formatter(ScalarFormatter())
    drawn = {arm for arm in cells if _line(axis, plot, curves.get(arm, {}), arm, shown)}
    end = max((i for arm in drawn for run in curves[arm].values() for i in run.get(plot.key, {})), default=0)
    ticks = MaxNLocator(6, integer=True).tick_values(0, max(end, 1))
    axis.set_xticks([t for t in ticks if 0 <= t <= max(end, 1)])
    if drawn and plot.final:
        drawn |= _finals(axis, plot, cells, shown, end)
    if not drawn:
        not_measured(axis)
    if plot.mark is not None and drawn:
        _mark(axis, plot)
    return drawn


def _line(axis: Axes, plot: Plot, runs: Mapping[int, Run], arm: str, shown: list[str]) -> bool:
    measured = {seed: run for seed, run in runs.items() if run.get(plot.key)}
    mean = mean_series(measured, plot.key)
    if not mean or (plot.only_changing and not any(mean.values())):
        return False
    look, scale = looks(shown)[arm], 100.0 if plot.percent else 1.0
    columns = [[run[plot.key][i] * scale for run in measured.values()] for i in mean]
    every = max(1, len(mean) // 8)
    axis.plot(
        list(mean), [value * scale for value in mean.values()], look.line, color=look.colour, marker=look.marker,
        markersize=4, markevery=every,
    )  # fmt: skip
    axis.fill_between(
        list(mean), [min(c) for c in columns], [max(c) for c in columns], color=look.colour, alpha=0.15, lw=0
    )
    if plot.bound:
        bound = mean_series(measured, plot.bound)
        axis.plot(list(bound), [value * scale for value in bound.values()], ":", color=look.colour, lw=1.2)
    return True


def _finals(axis: Axes, plot: Plot, cells: Cells, shown: list[str], end: int) -> set[str]:
    """The final checkpoint of each arm at the right edge, and the base as a line across."""
    scale = 100.0 if plot.percent else 1.0
    found = _final_values(plot, cells)
    last = _place(end, len(found) + 0.5)
    axis.set_xlim(right=last)
    axis.axvspan(_place(end, 0.5), last, color=PALE, lw=0, zorder=0)
    axis.text(last, 1.0, "final ", transform=axis.get_xaxis_transform(), ha="right", va="top", fontsize=8)
    for rank, (arm, value) in enumerate(found.items(), start=1):
        look, place = looks(shown)[arm], _place(end, rank)
        low, high = value.low, value.high
        error = (
            None
            if low is None or high is None
            else [[scale * (value.mean - low)], [scale * (high - value.mean)]]
        )
        axis.errorbar(
            place, scale * value.mean, yerr=error, color=look.colour, marker=look.marker, markersize=5,
            elinewidth=1.2,
        )  # fmt: skip
        if arm == BASE and plot.percent:
            axis.axhline(scale * value.mean, color=look.colour, ls=look.line, lw=1.0, zorder=1)
    return set(found)


def _final_values(plot: Plot, cells: Cells) -> dict[str, Estimate]:
    """The final value of each arm in the panel; none where the panel has no final values."""
    name = plot.final.name if plot.final else ""
    found = {arm: row[name].value for arm, row in cells.items() if name in row}
    return {arm: value for arm, value in found.items() if value.mean or not plot.only_changing}


def _place(end: int, rank: float) -> float:
    """Where the final value number `rank` stands, right of the last iteration."""
    return end + 0.045 * max(end, 1) * rank


def _mark(axis: Axes, plot: Plot) -> None:
    assert plot.mark is not None
    height = plot.mark * (100.0 if plot.percent else 1.0)
    axis.axhline(height, color=INK, ls=":", lw=1.0, zorder=1)
    axis.text(
        0.01, height, plot.mark_text, transform=axis.get_yaxis_transform(), va="bottom", fontsize=8, color=INK
    )


def _rows(plot: Plot, curves: Curves, cells: Cells) -> Iterator[Row]:
    """The numbers of one panel, of the arms of `cells`: every seed's curve and bound, and the final values."""
    for arm in cells:
        for seed, run in curves.get(arm, {}).items():
            for key in filter(None, (plot.key, plot.bound)):
                for iteration, value in run.get(key, {}).items():
                    yield key, arm, f"seed {seed}", iteration, value, None, None
    for arm, final in _final_values(plot, cells).items():
        yield plot.key, arm, "final", "", final.mean, final.low, final.high
