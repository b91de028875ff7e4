"""What all charts share: a chart with its numbers, an empty figure, names that matplotlib may show, and a legend."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from rlanything.report.formatting import plain
from rlanything.report.style import INK, looks

Row = tuple[str, str, str, float | int | str, float, float | None, float | None]
"""panel, arm, of (`seed 0`, `final`, `paper`, ...), x, value, low, high: one number of a chart."""
COLUMNS = ("panel", "arm", "of", "x", "value", "low", "high")


@dataclass(frozen=True)
class Chart:
    """The numbers of one figure, which is drawn only when `draw` is called: many pages show few of their charts.

    name: the figure's file name without ending. iterations: of each row the iteration that it is of, where x is
    something else; None for a row of several.
    """

    name: str
    rows: Sequence[Row]
    draw: Callable[[], Figure]
    iterations: Sequence[int | None] = ()


def empty(width: float, height: float, panels: int, *, level: bool = False) -> tuple[Figure, list[Axes]]:
    """A figure of so many inches with its panels. level: they share their vertical axis."""
    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure, list(figure.subplots(1, panels, squeeze=False, sharey=level)[0])


def label(arm: str) -> str:
    """An arm's name as matplotlib may show it: a dollar sign would start a formula."""
    return plain(arm, 24).replace("$", r"\$")


def legend(figure: Figure, arms: list[str], shown: list[str]) -> None:
    """The arms above the panels. shown: all arms of the report, which decide the looks."""
    look = looks(shown)
    handles = [
        Line2D([], [], color=look[a].colour, marker=look[a].marker, ls=look[a].line, markersize=5)
        for a in arms
    ]
    if handles:
        figure.legend(handles, [label(a) for a in arms], loc="outside upper center", ncols=min(6, len(arms)))


def not_measured(axis: Axes) -> None:
    """Say that a panel has nothing to show."""
    axis.text(0.5, 0.5, "not measured", transform=axis.transAxes, ha="center", color=INK)
