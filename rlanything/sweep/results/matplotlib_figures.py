"""The figures of a sweep's report.md, as PNG and SVG, drawn by matplotlib. `plotly_figures` has those of the page."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from rlanything.report.figures import rendered
from rlanything.report.formatting import plain
from rlanything.report.results.statistics import Estimate
from rlanything.report.style import INK, SETTINGS
from rlanything.sweep.declare.metrics import display_scale
from rlanything.sweep.results.views import Point, Views

BLUE, ORANGE, GREEN, GREY = "#0072B2", "#D55E00", "#009E73", "#8c8c8c"
WIDE = 8
"""Positive numbers that span at least this factor have a logarithmic axis, as keys have that are declared so."""
PER_ROW = 4
"""Panels of a figure in one row."""
COLOURS = {"paper": ORANGE, "default": GREEN}
MARKERS = {"paper": "D", "default": "s"}
"""Their shapes, for readers who cannot tell the colours apart; other trials are round."""


def draw(views: Views) -> Iterator[tuple[str, bytes]]:
    """(file name, content) of every figure for which the sweep has data."""
    with mpl.rc_context(SETTINGS):
        for name, make in FIGURE.items():
            figure = make(views)
            if figure is not None:
                for kind, content in rendered(figure):
                    yield f"{name}.{kind}", content


def _figure(width: float, height: float, panels: int = 1, rows: int = 1) -> tuple[Figure, list[Axes]]:
    figure = Figure(figsize=(width, height * rows), layout="constrained")
    FigureCanvasAgg(figure)
    return figure, list(figure.subplots(rows, panels, squeeze=False).flat)


def _bars(axis: Axes, x: float, found: Estimate, factor: float, point: Point) -> None:
    """A mean with its interval, in the colour and the shape of its trial."""
    colour, marker = colour_of(point), marker_of(point)
    axis.plot([x], [factor * found.mean], marker, color=colour, markersize=5)
    if found.low is not None and found.high is not None:
        axis.plot([x, x], [factor * found.low, factor * found.high], color=colour, lw=1.2, alpha=0.7)


def colour_of(point: Point) -> str:
    """Blue; the baselines have their own."""
    return COLOURS.get(point.label, BLUE)


def marker_of(point: Point) -> str:
    """A circle; the baselines have their own shape."""
    return MARKERS.get(point.label, "o")


def escape_math(text: str) -> str:
    """Text from outside for matplotlib, where a dollar sign would start a formula."""
    return plain(text, 40).replace("$", r"\$")


def _history(views: Views) -> Figure | None:
    if not views.finished:
        return None
    figure, (axis,) = _figure(7.2, 3.4)
    factor = display_scale(views.metrics[0])
    for point in views.finished:
        _bars(axis, point.number, point.found[0], factor, point)
        if point.label:
            axis.annotate(
                escape_math(point.label), (point.number, factor * point.found[0].mean), xytext=(5, 3),
                textcoords="offset points", fontsize=8,
            )  # fmt: skip
    line = views.leader()
    axis.step([n for n, _ in line], [factor * v for _, v in line], where="post", color=GREY, lw=1.2)
    for point in views.points:
        if not point.found:
            axis.plot([point.number], [0.02], "x", color=GREY, transform=axis.get_xaxis_transform())
    axis.set_title("Every trial with its 95 % interval; the line is the best mean so far")
    axis.set_xlabel("trial (x: pruned or crashed)")
    axis.set_ylabel(escape_math(views.objectives[0]))
    axis.xaxis.set_major_locator(MaxNLocator(integer=True))
    return figure


def _front(views: Views) -> Figure | None:
    others = len(views.objectives) - 1
    if not views.finished or others == 0:
        return None
    figure, axes = _figure(4.4 * others + 0.4, 3.6, others)
    for axis, other in zip(axes, range(1, others + 1), strict=True):
        fx, fy = display_scale(views.metrics[0]), display_scale(views.metrics[other])
        for p in views.finished:
            x, y = p.found[0], p.found[other]
            filled = colour_of(p) if p.number in views.front else "none"
            axis.errorbar(
                fx * x.mean, fy * y.mean, xerr=_ends(x, fx), yerr=_ends(y, fy), color=colour_of(p), marker=marker_of(p),
                mfc=filled, elinewidth=0.7, alpha=0.9,
            )  # fmt: skip
            axis.annotate(
                p.name, (fx * x.mean, fy * y.mean), xytext=(4, 3), textcoords="offset points", fontsize=7
            )
        axis.set_xlabel(escape_math(views.objectives[0]))
        axis.set_ylabel(escape_math(views.objectives[other]))
    axes[0].set_title("Filled: no other trial is better in everything")
    return figure


def _ends(found: Estimate, factor: float) -> list[list[float]] | None:
    if found.low is None or found.high is None:
        return None
    return [[factor * (found.mean - found.low)], [factor * (found.high - found.mean)]]


def _slices(views: Views) -> Figure | None:
    keys = views.varied
    if not views.finished or not keys:
        return None
    across = min(len(keys), PER_ROW)
    figure, axes = _figure(3.6 * across + 0.4, 3.2, across, math.ceil(len(keys) / across))
    factor = display_scale(views.metrics[0])
    for spare in axes[len(keys) :]:
        spare.set_axis_off()
    for axis, key in zip(axes, keys, strict=False):
        positions = Positions([p.sets[key] for p in views.finished], key in views.logarithmic)
        for point in views.finished:
            _bars(axis, positions.at(point.sets[key]), point.found[0], factor, point)
        ticks = positions.ticks
        if positions.logarithmic:
            axis.set_xscale("log", base=2)
            axis.xaxis.set_major_formatter("{x:g}")
        if ticks:
            axis.set_xticks(range(len(ticks)), [escape_math(t) for t in ticks])
        axis.set_xlabel(escape_math(key))
    axes[0].set_ylabel(escape_math(views.objectives[0]))
    return figure


class Positions:
    """Positions of values on an axis: numbers at their value, text at 0, 1, 2 ..."""

    def __init__(self, values: Sequence[object], declared: bool = False) -> None:
        """`declared`: the key is declared on a log scale."""
        self.numeric = all(isinstance(v, (int, float)) and not isinstance(v, bool) for v in values)
        numbers = [float(str(v)) for v in values] if self.numeric else []
        wide = bool(numbers) and min(numbers) > 0 and (declared or max(numbers) >= WIDE * min(numbers))
        self.logarithmic = wide
        self.ticks = [] if self.numeric else sorted({str(v) for v in values})

    def at(self, value: object) -> float:
        """The position of one value."""
        return float(str(value)) if self.numeric else float(self.ticks.index(str(value)))


def _contour(views: Views) -> Figure | None:
    if not views.contours:
        return None
    figure, axes = _figure(4.8 * len(views.contours) + 0.6, 4.0, len(views.contours))
    factor = display_scale(views.metrics[0])
    for axis, contour in zip(axes, views.contours, strict=True):
        low, high = contour.keys
        drawn = axis.contourf(contour.x, contour.y, factor * contour.surface, levels=10, cmap="viridis")
        figure.colorbar(drawn, ax=axis, label=escape_math(views.objectives[0]))
        axis.use_sticky_edges = False  # else dots at the edges are cut
        axis.margins(0.06)
        for p in contour.trials:
            x, y = float(p.sets[low]), float(p.sets[high])
            axis.plot([x], [y], marker_of(p), color=colour_of(p), mec="white", markersize=6)
            axis.annotate(str(p.number), (x, y), xytext=(4, 4), textcoords="offset points", fontsize=7)
        axis.set_xlabel(escape_math(low))
        axis.set_ylabel(escape_math(high))
    axes[0].set_title("Means, smoothed; one dot a trial")
    return figure


def _importances(views: Views) -> Figure | None:
    if not views.importances:
        return None
    figure, (axis,) = _figure(6.0, 0.9 + 0.4 * len(views.importances))
    for row, (_, found) in enumerate(views.importances.items()):
        assert found.low is not None
        assert found.high is not None
        axis.plot([found.low, found.high], [row, row], color=BLUE, lw=2)
        axis.plot([found.mean], [row], "o", color=BLUE)
    axis.set_yticks(range(len(views.importances)), [escape_math(n) for n in views.importances])
    axis.set_xlim(0, 1)
    axis.set_title("Importance (PED-ANOVA) with 95 % interval")
    return figure


def _adaptation(views: Views) -> Figure | None:
    drawn = [p for p in views.finished if p.accepted is not None or p.band_coverage is not None]
    if not drawn:
        return None
    figure, (left, right) = _figure(7.6, 3.0, 2)
    for p in drawn:
        if p.accepted is not None:
            _bars(left, p.number, p.accepted, 1.0, p)
        if p.band_coverage is not None:
            right.plot([p.number], [100 * p.band_coverage], marker_of(p), color=colour_of(p))
    left.set_title("Accepted tasks, a seed")
    right.set_title("Tasks inside the band (%)")
    for axis in (left, right):
        axis.set_xlabel("trial")
        axis.set_ylim(bottom=0)
        axis.xaxis.set_major_locator(MaxNLocator(integer=True))
    return figure


def _fresh(views: Views) -> Figure | None:
    if not views.fresh:
        return None
    figure, (axis,) = _figure(6.4, 1.2 + 0.5 * len(views.fresh))
    factor, leads = display_scale(views.metrics[0]), views.leads()
    for row, (_, found) in enumerate(leads):
        colour = BLUE if row % 2 else GREY
        axis.plot([factor * found.mean], [row], "o", color=colour)
        if found.low is not None and found.high is not None:
            axis.plot([factor * found.low, factor * found.high], [row, row], color=colour, lw=2)
    axis.axvline(0, color=INK, lw=1)
    axis.set_yticks(range(len(leads)), [escape_math(name) for name, _ in leads])
    axis.set_ylim(len(leads) - 0.5, -0.5)
    axis.set_title(f"Lead of trial {views.fresh[0].winner}: {escape_math(views.objectives[0])}")
    return figure


FIGURE: dict[str, Callable[[Views], Figure | None]] = {
    "history": _history, "front": _front, "slices": _slices, "contour": _contour,
    "importances": _importances, "adaptation": _adaptation, "fresh": _fresh,
}  # fmt: skip
"""Name -> function that draws it; it returns None where the sweep has no data for it."""
