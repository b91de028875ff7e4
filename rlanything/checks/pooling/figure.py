"""A forest plot of each comparison: the difference in every experiment, and the mean over them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from rlanything.checks.pooling.document import figure_name
from rlanything.checks.pooling.results import Found, Row
from rlanything.report.figures import label, rendered
from rlanything.report.formatting import plain
from rlanything.report.results.statistics import Estimate
from rlanything.report.style import INK, SETTINGS

EACH, MEAN = "#5f5f5f", "#0072B2"
WIDTH, LINE = 3.6, 0.28
"""Inches of a metric's axes, and of a line."""


def draw(found: Found) -> Iterator[tuple[str, bytes]]:
    """(file name, content) of every figure in every format; the same bytes for the same numbers."""
    for compared in found.declared.comparisons:
        rows = [row for row in found.rows if row.compared == compared]
        with mpl.rc_context({**SETTINGS, "axes.grid.axis": "x"}):
            for kind, content in rendered(_figure(rows)):
                yield f"{figure_name(compared)}.{kind}", content


def _figure(rows: Sequence[Row]) -> Figure:
    names = list(dict.fromkeys(one.experiment for row in rows for one in row.differences))
    figure = Figure(figsize=(WIDTH * len(rows) + 1.2, LINE * (len(names) + 1) + 1.3), layout="constrained")
    FigureCanvasAgg(figure)
    all_axes = figure.subplots(1, len(rows), sharey=True, squeeze=False)[0]
    for axes, row in zip(all_axes, rows, strict=True):
        _forest(axes, row, names)
    first = all_axes[0]
    first.set_yticks(range(len(names) + 1), ["pooled", *reversed(shown_names(names))])
    first.set_ylim(-0.6, len(names) + 0.6)
    compared = rows[0].compared
    unit = "points" if all(row.metric.is_share for row in rows) else "points; counts: tasks"
    figure.supxlabel(f"{label(compared.arm)} over {label(compared.over)} ({unit})", fontsize="medium")
    return figure


def shown_names(names: Sequence[str]) -> list[str]:
    """The last part of each experiment's name; the whole name where that is empty, or another one has it too."""
    last = [Path(name).name for name in names]
    shown = [one if one and last.count(one) == 1 else name for one, name in zip(last, names, strict=True)]
    # Not cut: names that only differ at their ends would look alike. A dollar sign would start a formula.
    return [plain(name).replace("$", r"\$") for name in shown]


def _forest(axes: Axes, row: Row, names: Sequence[str]) -> None:
    axes.axvline(0, color=INK, lw=1.0)
    for one in row.differences:
        place = len(names) - names.index(one.experiment)
        _line(axes, place, one.contrast.difference, row.metric.scale, EACH, "o")
    axes.axhline(0.5, color=EACH, lw=0.6)
    _line(axes, 0, row.pooled.mean, row.metric.scale, MEAN, "D")
    axes.set_title(row.metric.short)


def _line(axes: Axes, place: int, found: Estimate, scale: float, colour: str, marker: str) -> None:
    if found.low is not None and found.high is not None:
        axes.plot([scale * found.low, scale * found.high], [place] * 2, color=colour, lw=1.6)
    axes.plot([scale * found.mean], [place], marker=marker, color=colour, ls="", markersize=6)
