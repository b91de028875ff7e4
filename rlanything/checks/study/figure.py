"""The study's figures, as PNG and SVG bytes.

A line for each hypothesis with its difference and interval; success within so many steps; and, where its three arms
were trained, the final points of the paper's Fig. 6a.
"""

from __future__ import annotations

from collections.abc import Iterator

import matplotlib as mpl
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from rlanything.checks.study.results import Found
from rlanything.checks.study.verdict import Verdict
from rlanything.report.drawn.arms import steps_chart
from rlanything.report.drawn.canvas import empty
from rlanything.report.figures import label, rendered
from rlanything.report.results.comparison import Cell
from rlanything.report.style import INK, SETTINGS, looks

NAME = "study"
STEPS = "steps"
"""Name of the figure of success against the number of steps allowed."""
SIGNALS = "signals"
"""Name of the figure of what rewards the policy: outcomes, votes, or both."""
LOOKS = {
    Verdict.HOLDS: ("#0072B2", "o"),
    Verdict.SMALL: ("#56B4E9", "o"),
    Verdict.REVERSED: ("#D55E00", "v"),
    Verdict.TOO_SMALL: ("#D55E00", "s"),
    Verdict.OPEN: ("#5f5f5f", "D"),
}
"""Colour and marker of each verdict."""


def draw(found: Found) -> Iterator[tuple[str, bytes]]:
    """(file name, content) of every figure in every format; the same bytes for the same numbers."""
    with mpl.rc_context({**SETTINGS, "axes.grid.axis": "x"}):
        yield from _files(NAME, _figure(found))
    with mpl.rc_context(SETTINGS):
        if found.within:
            cells: dict[str, dict[str, Cell]] = {arm: {} for arm in found.values}  # the arms decide the looks
            yield from _files(STEPS, steps_chart(found.within, found.contents, cells).draw())
        if found.signals:
            yield from _files(SIGNALS, _signals(found))


def _files(name: str, figure: Figure) -> Iterator[tuple[str, bytes]]:
    return ((f"{name}.{kind}", content) for kind, content in rendered(figure))


def _figure(found: Found) -> Figure:
    figure = Figure(figsize=(7.2, 0.45 * len(found.rows) + 1.4), layout="constrained")
    FigureCanvasAgg(figure)
    axis = figure.subplots()
    axis.axvline(0, color=INK, lw=1.0)
    for place, row in enumerate(reversed(found.rows)):
        if row.contrast is None:
            continue
        colour, marker = LOOKS[row.verdict]
        difference, scale = row.contrast.difference, row.metric.scale
        if difference.low is not None and difference.high is not None:
            axis.plot([scale * difference.low, scale * difference.high], [place] * 2, color=colour, lw=1.4)
        axis.plot([scale * difference.mean], [place], marker=marker, color=colour, ls="", markersize=6)
    names = [
        f"{label(row.hypothesis.arm)} over {label(row.hypothesis.over)}, {row.metric.short}"
        for row in found.rows
    ]
    axis.set_yticks(range(len(names)), names[::-1])
    axis.set_xlabel("difference (points; accepted tasks: tasks)")
    for verdict, (colour, marker) in LOOKS.items():
        if any(row.verdict is verdict for row in found.rows):
            axis.plot([], [], marker=marker, color=colour, ls="", label=verdict.value)
    figure.legend(loc="outside upper center", ncols=2)
    return figure


def _signals(found: Found) -> Figure:
    """Success of the final checkpoints of the three arms with its interval, a panel for each panel of the policy."""
    panels = found.success
    figure, axes = empty(3.2 * len(panels) + 0.4, 3.2, len(panels), level=True)
    look = looks(list(found.values))
    for axis, metric in zip(axes, panels, strict=True):
        axis.set_title(f"{found.contents.title(metric)} (%)")
        axis.set_xticks(range(len(found.signals)), [label(arm) for arm in found.signals])
        axis.set_xlim(-0.5, len(found.signals) - 0.5)
        for place, arm in enumerate(found.signals):
            value = found.values[arm].get(metric.name)
            if value is None:
                continue
            colour, marker = look[arm].colour, look[arm].marker
            if value.low is not None and value.high is not None:
                axis.plot([place, place], [100 * value.low, 100 * value.high], color=colour, lw=1.4)
            axis.plot([place], [100 * value.mean], marker=marker, color=colour, ls="", markersize=7)
    return figure
