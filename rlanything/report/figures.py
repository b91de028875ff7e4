"""The report's figures, as PNG and SVG bytes that are the same for the same numbers.

Lines are means over seeds, bands go from the lowest to the highest seed. What was measured while training (on the small
curve panels) is a line; the final checkpoint on the full panels, with its 95 % interval, is a marker at the end.
"""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping, Sequence

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from rlanything.config import BASE
from rlanything.report.contents import Contents, Plot
from rlanything.report.formatting import plain
from rlanything.report.report_data import ReportData
from rlanything.report.results.arms import ordered
from rlanything.report.results.comparison import Cells
from rlanything.report.results.curves import Curves, Run, mean_series
from rlanything.report.results.metrics import Metric
from rlanything.report.results.paper import Paper
from rlanything.report.style import INK, PALE, SETTINGS, Look, looks

FORMATS = {"png": {"Software": None}, "svg": {"Date": None, "Creator": None}}
"""Metadata that would change with the day or the version is left out."""


GAINS = "gains"
"""Name of the figure of differences from the base."""
STEPS = "steps"
"""Name of the figure of success against the number of steps allowed."""


def draw(data: ReportData) -> Iterator[tuple[str, bytes]]:
    """(file name, content) of every figure; a panel without data says so."""
    curves, cells, contents = data.curves, data.cells, data.contents
    with mpl.rc_context(SETTINGS):
        for drawing in contents.drawings:
            yield from _render(drawing.name, _curves(drawing.plots, curves, cells))
        yield from _render(GAINS, _gains(cells, contents))
        if contents.acts:
            yield from _render(STEPS, _steps(data.extras.within, contents, cells))


def _render(name: str, figure: Figure) -> Iterator[tuple[str, bytes]]:
    for kind, metadata in FORMATS.items():
        buffer = io.BytesIO()
        figure.savefig(buffer, format=kind, metadata=metadata)
        yield f"{name}.{kind}", buffer.getvalue()


def _figure(width: float, height: float, panels: int, *, level: bool = False) -> tuple[Figure, list[Axes]]:
    """`level`: the panels share their vertical axis."""
    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure, list(figure.subplots(1, panels, squeeze=False, sharey=level)[0])


def _curves(plots: Sequence[Plot], curves: Curves, cells: Cells) -> Figure:
    same_unit = all(plot.final and plot.percent for plot in plots)
    figure, axes = _figure(4.6 * len(plots) + 0.4, 3.6, len(plots), level=same_unit)
    shown = ordered([*curves, *cells])
    drawn: set[str] = set()
    for axis, plot in zip(axes, plots, strict=True):
        drawn |= _panel(axis, plot, curves, cells, shown)
    _legend(figure, [arm for arm in shown if arm in drawn], shown)
    return figure


def _panel(axis: Axes, plot: Plot, curves: Curves, cells: Cells, shown: list[str]) -> set[str]:
    """Draw one panel; returns the arms that it shows."""
    axis.set_title(plot.title)
    axis.set_xlabel("iteration")
    drawn = {arm for arm in shown if _line(axis, plot, curves.get(arm, {}), arm, shown)}
    end = max((i for arm in drawn for run in curves[arm].values() for i in run[plot.key]), default=0)
    axis.set_xticks(
        [t for t in MaxNLocator(6, integer=True).tick_values(0, max(end, 1)) if 0 <= t <= max(end, 1)]
    )
    if drawn and plot.final:
        drawn |= _finals(axis, plot, cells, shown, end)
    if not drawn:
        axis.text(0.5, 0.5, "not measured", transform=axis.transAxes, ha="center", color=INK)
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
    return True


def _finals(axis: Axes, plot: Plot, cells: Cells, shown: list[str], end: int) -> set[str]:
    """The final checkpoint of each arm at the right edge, and the base as a line across."""
    scale = 100.0 if plot.percent else 1.0
    name = plot.final.name if plot.final else ""
    found = {arm: cells[arm][name].value for arm in shown if name in cells.get(arm, {})}
    found = {arm: value for arm, value in found.items() if value.mean or not plot.only_changing}
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
            place,
            scale * value.mean,
            yerr=error,
            color=look.colour,
            marker=look.marker,
            markersize=5,
            elinewidth=1.2,
        )
        if arm == BASE and plot.percent:
            axis.axhline(scale * value.mean, color=look.colour, ls=look.line, lw=1.0, zorder=1)
    return set(found)


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


def _legend(figure: Figure, arms: list[str], shown: list[str]) -> None:
    look = looks(shown)
    handles = [
        Line2D([], [], color=look[a].colour, marker=look[a].marker, ls=look[a].line, markersize=5)
        for a in arms
    ]
    if handles:
        figure.legend(handles, [label(a) for a in arms], loc="outside upper center", ncols=min(6, len(arms)))


def label(arm: str) -> str:
    """An arm's name as matplotlib may show it: a dollar sign would start a formula."""
    return plain(arm, 24).replace("$", r"\$")


def _gains(cells: Cells, contents: Contents) -> Figure:
    """Difference from the base with its interval, and the paper's as a hollow marker."""
    arms = [arm for arm in cells if arm != BASE]
    width, height = max(9.6, 1.92 * len(contents.shares)), 1.1 + 0.34 * max(2, len(arms))
    figure, axes = _figure(width, height, len(contents.shares))
    for axis, metric in zip(axes, contents.shares, strict=True):
        axis.set_title(metric.short[0].upper() + metric.short[1:])
        axis.grid(axis="x")
        axis.grid(visible=False, axis="y")
        axis.axvline(0, color=INK, lw=1.0)
        axis.set_yticks(range(len(arms)), [label(a) for a in arms] if axis is axes[0] else [""] * len(arms))
        axis.set_ylim(len(arms) - 0.4, -0.6)
        for row, arm in enumerate(arms):
            _gain(axis, row, arm, metric, cells, contents.paper)
    figure.supxlabel(f"points above the base, 95 % interval (hollow: {contents.paper.name})", fontsize=9)
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


def _steps(within: Mapping[str, Mapping[str, list[list[float]]]], contents: Contents, cells: Cells) -> Figure:
    """Success of the final checkpoints against the number of steps allowed, the mean over seeds with their range."""
    panels = [metric for metric in contents.shares if metric.is_success]
    figure, axes = _figure(4.6 * len(panels) + 0.4, 3.6, len(panels), level=True)
    shown = ordered([*cells, *within])
    for axis, metric in zip(axes, panels, strict=True):
        axis.set_title(f"{contents.title(metric)} (%)")
        axis.set_xlabel("steps allowed")
        axis.xaxis.set_major_locator(MaxNLocator(6, integer=True))
        drawn = [arm for arm in shown if metric.name in within.get(arm, {})]
        for arm in drawn:
            _success(axis, within[arm][metric.name], looks(shown)[arm])
        if not drawn:
            axis.text(0.5, 0.5, "not measured", transform=axis.transAxes, ha="center", color=INK)
    _legend(figure, [arm for arm in shown if arm in within], shown)
    return figure


def _success(axis: Axes, seeds: Sequence[Sequence[float]], look: Look) -> None:
    """One arm: a line through the means over seeds, and a band from the lowest to the highest."""
    limits = range(1, len(seeds[0]) + 1)
    columns = [[100.0 * rate for rate in column] for column in zip(*seeds, strict=True)]
    means = [sum(column) / len(column) for column in columns]
    axis.plot(
        limits,
        means,
        look.line,
        color=look.colour,
        marker=look.marker,
        markersize=4,
        markevery=max(1, len(means) // 8),
    )
    axis.fill_between(
        limits, [min(c) for c in columns], [max(c) for c in columns], color=look.colour, alpha=0.15, lw=0
    )
