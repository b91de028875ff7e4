"""The selection's figure: solved problems by method, a marker for each pair, as PNG and SVG bytes."""

from __future__ import annotations

from collections.abc import Iterator

import matplotlib as mpl
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from rlanything.checks.selection.declare import ORACLE, SINGLE
from rlanything.checks.selection.results import Found
from rlanything.report.figures import label, rendered
from rlanything.report.style import SETTINGS, looks

NAME = "selection"
LABELS = {SINGLE: "pass@1", "best_of_n": "Best of N", "mpsc": "MPSC", "s_star": "S*", ORACLE: "pass@N"}
WIDTH = 0.6
"""Of a column's markers side by side; columns are 1 apart."""


def draw(found: Found) -> Iterator[tuple[str, bytes]]:
    """(file name, content) of the figure in every format; the same bytes for the same numbers."""
    with mpl.rc_context(SETTINGS):
        for kind, content in rendered(_figure(found)):
            yield f"{NAME}.{kind}", content


def _figure(found: Found) -> Figure:
    columns, arms = found.selection.columns, list(found.arms)
    figure = Figure(figsize=(1.3 * len(columns) + 1.2, 3.8), layout="constrained")
    FigureCanvasAgg(figure)
    axis = figure.subplots()
    for rank, (arm, look) in enumerate(looks(arms).items()):
        beside = WIDTH * ((rank + 0.5) / len(arms) - 0.5)
        rows = found.of(arm)
        places = [columns.index(row.column) + beside for row in rows]
        for place, row in zip(places, rows, strict=True):
            if row.value.low is not None and row.value.high is not None:
                axis.plot([place] * 2, [100 * row.value.low, 100 * row.value.high], color=look.colour, lw=1.2)
        heights = [100 * row.value.mean for row in rows]
        axis.plot(
            places, heights, marker=look.marker, color=look.colour, ls="", markersize=6, label=label(arm)
        )
    axis.set_xticks(range(len(columns)), [LABELS[column] for column in columns])
    axis.set_ylabel("solved problems (%)")
    axis.set_title(found.metric.short[0].upper() + found.metric.short[1:])
    figure.legend(loc="outside upper center", ncols=4)
    return figure
