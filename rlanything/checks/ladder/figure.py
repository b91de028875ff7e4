"""The ladder's figure: the gain over the zero arm against the accuracy of the votes, as PNG and SVG bytes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from rlanything.checks.ladder.declare import CEILING, EXPERT, LADDER_CONTROLS
from rlanything.checks.ladder.results import Found, Mark, Row
from rlanything.config import BASE, BASE_COOLED
from rlanything.report.figures import label, rendered
from rlanything.report.style import INK, PALE, SETTINGS, looks

NAME = "ladder"
LINES = (("#0072B2", "o"), ("#D55E00", "s"), ("#009E73", "^"), ("#CC79A7", "D"))
"""Colour and marker for each share of systematic errors; from the fifth on they repeat."""
BESIDE = 0.4
"""Percent of accuracy by which the intervals of one line stand beside those of the one before."""
NEAR = 0.015
"""Share of accuracy between two marks that have a text each."""
ACROSS = {
    BASE: ("#5f5f5f", "--"),
    BASE_COOLED: ("#5f5f5f", ":"),
    CEILING: ("#7F3C8D", "-."),
    EXPERT: ("#7F3C8D", ":"),
}
"""Colour and line of each control."""


def draw(found: Found) -> Iterator[tuple[str, bytes]]:
    """(file name, content) of the figure in every format; the same bytes for the same numbers."""
    with mpl.rc_context(SETTINGS):
        figure = Figure(figsize=(4.9 * len(found.metrics) + 0.4, 4.2), layout="constrained")
        FigureCanvasAgg(figure)
        axes = list(figure.subplots(1, len(found.metrics), squeeze=False, sharey=True)[0])
        for axis, metric in zip(axes, found.metrics, strict=True):
            _panel(axis, found, metric.name)
            axis.set_title(metric.short[0].upper() + metric.short[1:])
        for axis, metric in zip(axes, found.metrics, strict=True):
            _noise(axis, found, metric.name)
        axes[0].set_ylabel(f"points above {label(found.ladder.zero)}")
        handles, names = axes[0].get_legend_handles_labels()
        figure.legend(handles, names, loc="outside upper center", ncols=4)
        for kind, content in rendered(figure):
            yield f"{NAME}.{kind}", content


def _panel(axis: Axes, found: Found, panel: str) -> None:
    axis.axhline(0, color=INK, lw=1.0)
    axis.set_xlabel("accuracy of a single vote (%)")
    for rank, share in enumerate(found.ladder.systematic):
        _line(axis, found, panel, rank, share)
    for name in (BASE, *LADDER_CONTROLS):
        _control(axis, found.row(panel, name))
    _marks(axis, found, panel)


def _noise(axis: Axes, found: Found, panel: str) -> None:
    """The band of differences that are too small to be shown; it changes no limit of the axis."""
    power, limits = found.power[panel][0], axis.get_ylim()
    least, told = (
        100 * power.difference,
        f"less than one test of {power.seeds} seeds and {power.games} games shows",
    )
    axis.axhspan(-least, least, color=PALE, lw=0, zorder=0, label=told)
    axis.set_ylim(limits)


def _marks(axis: Axes, found: Found, panel: str) -> None:
    """A line at each measured reward model's place on the axis, and the gain of the arm that it judged for."""
    for marks in beside(found.marks):
        place = 100 * marks[0].single
        axis.axvline(place, color=INK, ls=":", lw=1.0, zorder=1)
        axis.text(
            place, 0.99, mark_text(marks), rotation=90, va="top", ha="right",
            fontsize=7, transform=axis.get_xaxis_transform(), color=INK,
        )  # fmt: skip
        for rank, mark in enumerate(mark for mark in marks if mark.arm != BASE):
            row, look = found.row(panel, mark.arm), looks(list(found.ladder.compare))[mark.arm]
            if row is not None:
                own = 100 * mark.single + rank * BESIDE
                _point(axis, own, row, look.colour, look.marker, label(mark.arm))


def beside(marks: Sequence[Mark]) -> list[list[Mark]]:
    """The marks from left to right. Those that are too near to each other for two texts are together."""
    groups: list[list[Mark]] = []
    for mark in sorted(marks, key=lambda mark: mark.single):
        if groups and mark.single - groups[-1][0].single < NEAR:
            groups[-1].append(mark)
        else:
            groups.append([mark])
    return groups


def mark_text(marks: Sequence[Mark]) -> str:
    """Whose reward models these are, and the accuracy of their majority where the place is derived from it."""
    names = ", ".join(label(mark.arm) for mark in marks)
    if marks[0].single == marks[0].accuracy:
        return f"reward model of {names}"
    first, last = (f"{100 * mark.accuracy:.1f}" for mark in (marks[0], marks[-1]))
    return f"reward model of {names}\n(majority {first if first == last else f'{first} to {last}'} %)"


def _line(axis: Axes, found: Found, panel: str, rank: int, share: float) -> None:
    """The judges with this share of systematic errors; perfect votes belong to every line."""
    colour, marker = LINES[rank % len(LINES)]
    rows = [
        row
        for row in found.rows[panel]
        if row.point is not None and (row.point.systematic == share or row.point.accuracy == 1.0)
    ]
    rows = sorted((row for row in rows if row.gain is not None), key=lambda row: row.accuracy)
    places = [100 * row.accuracy + rank * BESIDE for row in rows]
    heights = [100 * row.gain.difference.mean for row in rows if row.gain is not None]
    axis.plot(places, heights, color=colour, label=f"{100 * share:g} % of the errors systematic")
    for place, row in zip(places, rows, strict=True):
        _point(axis, place, row, colour, marker, None)


def _point(axis: Axes, place: float, row: Row, colour: str, marker: str, name: str | None) -> None:
    """A gain with its 95 % interval."""
    if row.gain is None:
        return
    gain = row.gain.difference
    if gain.low is not None and gain.high is not None:
        axis.plot([place, place], [100 * gain.low, 100 * gain.high], color=colour, lw=1.2)
    axis.plot([place], [100 * gain.mean], marker=marker, color=colour, ls="", markersize=6, label=name)


def _control(axis: Axes, row: Row | None) -> None:
    """A control as a line across."""
    if row is not None and row.gain is not None:
        colour, line = ACROSS[row.arm]
        height = 100 * row.gain.difference.mean
        axis.axhline(height, color=colour, ls=line, lw=1.2, zorder=1, label=label(row.arm))
