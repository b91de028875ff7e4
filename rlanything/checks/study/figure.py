"""The study's figure: a line for each hypothesis with its difference and interval, as PNG and SVG bytes."""

from __future__ import annotations

import io
from collections.abc import Iterator

import matplotlib as mpl
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from rlanything.checks.study.results import Found
from rlanything.checks.study.verdict import Verdict
from rlanything.report.figures import FORMATS, label
from rlanything.report.style import INK, SETTINGS

NAME = "study"
LOOKS = {
    Verdict.HOLDS: ("#0072B2", "o"),
    Verdict.SMALL: ("#56B4E9", "o"),
    Verdict.REVERSED: ("#D55E00", "v"),
    Verdict.TOO_SMALL: ("#D55E00", "s"),
    Verdict.OPEN: ("#5f5f5f", "D"),
}
"""Colour and marker of each verdict."""


def draw(found: Found) -> Iterator[tuple[str, bytes]]:
    """(file name, content) of the figure in every format; the same bytes for the same numbers."""
    with mpl.rc_context({**SETTINGS, "axes.grid.axis": "x"}):
        figure = _figure(found)
        for kind, metadata in FORMATS.items():
            buffer = io.BytesIO()
            figure.savefig(buffer, format=kind, metadata=metadata)
            yield f"{NAME}.{kind}", buffer.getvalue()


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
