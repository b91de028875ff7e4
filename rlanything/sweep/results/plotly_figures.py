"""The figures of a sweep's page, as data for Plotly. `matplotlib_figures` has those of report.md."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from html import escape
from typing import Any

from rlanything.report.formatting import plain
from rlanything.report.results.statistics import Estimate
from rlanything.sweep.declare.metrics import display_scale, format_estimate
from rlanything.sweep.results.matplotlib_figures import BLUE, GREY, PER_ROW, Positions, colour_of, marker_of
from rlanything.sweep.results.views import Contour, Point, Views

SYMBOLS = {"o": "circle", "D": "diamond", "s": "square"}
"""What Plotly calls the shapes of matplotlib."""


def escape_tags(text: object) -> str:
    """Text from outside for Plotly, which reads HTML tags in its texts."""
    return escape(plain(text, 60))


def _figure(data: list[dict[str, Any]], x: str, y: str, **layout: Any) -> dict[str, Any]:
    axes = {"xaxis": _axis(x), "yaxis": _axis(y)}
    given = {"margin": {"t": 20, "r": 20}, "showlegend": False, "hovermode": "closest"}
    return {"data": data, "layout": {**given, **axes, **layout}}


def _axis(title: str, **more: Any) -> dict[str, Any]:
    return {"title": {"text": escape_tags(title)}, "zeroline": False, **more}


def _trials(views: Views) -> dict[str, Any]:
    """The axis of trials, with whole numbers only."""
    return _axis("trial", tick0=0, dtick=max(1, len(views.points) // 10))


def _values(key: str, values: Sequence[Any], declared: bool) -> dict[str, Any]:
    """The axis of a key: logarithmic where it is `declared` so or its values are far apart.

    Where they are few, a logarithmic axis has its ticks at the values.
    """
    if not Positions(values, declared).logarithmic:
        return _axis(key)
    named = {"tickvals": sorted(set(values))} if len(set(values)) <= 8 else {}
    return _axis(key, type="log", **named)


def _error(found: Sequence[Estimate], factor: float) -> dict[str, Any]:
    """Asymmetric error bars; of length 0 where there is no interval."""
    above = [0.0 if e.high is None else factor * (e.high - e.mean) for e in found]
    below = [0.0 if e.low is None else factor * (e.mean - e.low) for e in found]
    return {
        "type": "data",
        "symmetric": False,
        "array": above,
        "arrayminus": below,
        "thickness": 1.2,
        "color": GREY,
    }


def _marker(points: Sequence[Point]) -> dict[str, Any]:
    """Size, colours and shapes of trials."""
    shapes = [SYMBOLS[marker_of(p)] for p in points]
    return {"size": 9, "color": [colour_of(p) for p in points], "symbol": shapes}


def _dots(views: Views, x: Sequence[Any], which: int = 0, **more: Any) -> dict[str, Any]:
    """One dot for each finished trial, with the interval of objective `which` as vertical error bar."""
    points, factor = views.finished, display_scale(views.metrics[which])
    found = [p.found[which] for p in points]
    return {
        "type": "scatter", "mode": "markers", "x": list(x), "y": [factor * e.mean for e in found],
        "error_y": _error(found, factor), "marker": _marker(points),
        "text": [_hover(p, views) for p in points], "hoverinfo": "text", **more,
    }  # fmt: skip


def _hover(point: Point, views: Views) -> str:
    lines = [f"trial {point.name}", *(f"{k} = {v}" for k, v in point.sets.items())]
    pairs = zip(views.objectives, point.found, views.metrics, strict=False)
    return "<br>".join(
        escape_tags(line) for line in [*lines, *(f"{n}: {format_estimate(e, m)}" for n, e, m in pairs)]
    )


def _history(views: Views) -> dict[str, Any] | None:
    if not views.finished:
        return None
    line, factor = views.leader(), display_scale(views.metrics[0])
    leader = {
        "type": "scatter", "mode": "lines", "x": [n for n, _ in line], "y": [factor * v for _, v in line],
        "line": {"shape": "hv", "color": GREY}, "hoverinfo": "skip",
    }  # fmt: skip
    data = [_dots(views, [p.number for p in views.finished]), leader]
    return _figure(data, "trial", views.objectives[0], xaxis=_trials(views))


def _front(views: Views) -> dict[str, Any] | None:
    if len(views.objectives) < 2 or not views.finished:
        return None
    factor = display_scale(views.metrics[0])
    first = [p.found[0] for p in views.finished]
    data = []
    for which in range(1, len(views.objectives)):
        dots = _dots(views, [factor * e.mean for e in first], which, error_x=_error(first, factor))
        dots["marker"]["symbol"] = [
            symbol if p.number in views.front else f"{symbol}-open"
            for p, symbol in zip(views.finished, dots["marker"]["symbol"], strict=True)
        ]
        end = "" if which == 1 else str(which)
        data.append({**dots, "xaxis": f"x{end}", "yaxis": f"y{end}"})
    grid = {"grid": {"rows": 1, "columns": len(data), "pattern": "independent"}}
    axes: dict[str, Any] = {}
    for which in range(2, len(views.objectives)):
        axes[f"xaxis{which}"] = _axis(views.objectives[0])
        axes[f"yaxis{which}"] = _axis(views.objectives[which])
    return _figure(data, views.objectives[0], views.objectives[1], **grid, **axes)


def _slices(views: Views) -> dict[str, Any] | None:
    keys = views.varied
    if not keys or not views.finished:
        return None
    data, axes = [], {}
    for i, key in enumerate(keys, 1):
        end = "" if i == 1 else str(i)
        values = [p.sets[key] for p in views.finished]
        shown = values if Positions(values).numeric else [escape_tags(v) for v in values]
        data.append(_dots(views, shown, xaxis=f"x{end}", yaxis=f"y{end}"))
        axes[f"xaxis{end}"] = _values(key, values, key in views.logarithmic)
        axes[f"yaxis{end}"] = _axis(views.objectives[0] if i == 1 else "")
    rows = math.ceil(len(keys) / PER_ROW)
    grid = {"rows": rows, "columns": min(len(keys), PER_ROW), "pattern": "independent"}
    return _figure(data, keys[0], views.objectives[0], grid=grid, height=380 * rows, **axes)


def _contour(views: Views) -> dict[str, Any] | None:
    if not views.contours:
        return None
    data: list[dict[str, Any]] = []
    axes: dict[str, Any] = {}
    for i, contour in enumerate(views.contours, 1):
        end = "" if i == 1 else str(i)
        data += [{**d, "xaxis": f"x{end}", "yaxis": f"y{end}"} for d in _surface(contour, views)]
        axes |= {f"xaxis{end}": _axis(contour.keys[0]), f"yaxis{end}": _axis(contour.keys[1])}
    grid = {"rows": 1, "columns": len(views.contours), "pattern": "independent"}
    bar = {"colorscale": "Viridis", "colorbar": {"title": {"text": escape_tags(views.objectives[0])}}}
    return _figure(data, "", "", grid=grid, coloraxis=bar, **axes)


def _surface(contour: Contour, views: Views) -> list[dict[str, Any]]:
    """The smoothed surface, and a dot for every trial that went into it."""
    (low, high), factor = contour.keys, display_scale(views.metrics[0])
    surface = [[None if v != v else factor * float(v) for v in row] for row in contour.surface]
    heat = {
        "type": "contour", "x": contour.x.tolist(), "y": contour.y.tolist(), "z": surface,
        "coloraxis": "coloraxis", "connectgaps": False, "hoverinfo": "skip",
    }  # fmt: skip
    dots = {
        "type": "scatter", "mode": "markers+text", "x": [p.sets[low] for p in contour.trials],
        "y": [p.sets[high] for p in contour.trials], "text": [str(p.number) for p in contour.trials],
        "textposition": "top right", "hovertext": [_hover(p, views) for p in contour.trials], "hoverinfo": "text",
        "marker": {**_marker(contour.trials), "size": 10, "line": {"color": "#fff", "width": 1}},
    }  # fmt: skip
    return [heat, dots]


def _importances(views: Views) -> dict[str, Any] | None:
    if not views.importances:
        return None
    found = list(views.importances.values())
    bars = {
        "type": "bar", "orientation": "h", "x": [e.mean for e in found],
        "y": [escape_tags(n) for n in views.importances],
        "error_x": _error(found, 1.0), "marker": {"color": BLUE},
    }  # fmt: skip
    return _figure([bars], "share (PED-ANOVA)", "", margin={"t": 20, "l": 180})


def _adaptation(views: Views) -> dict[str, Any] | None:
    points = [p for p in views.finished if p.accepted is not None and p.band_coverage is not None]
    if not points:
        return None
    accepted = [p.accepted for p in points if p.accepted is not None]
    numbers = [p.number for p in points]
    shared = {"type": "scatter", "mode": "markers", "x": numbers, "text": [_hover(p, views) for p in points]}
    marker = _marker(points)
    left = {**shared, "y": [e.mean for e in accepted], "error_y": _error(accepted, 1.0), "marker": marker}
    right = {**shared, "y": [100 * (p.band_coverage or 0.0) for p in points], "marker": marker}
    grid = {"rows": 1, "columns": 2, "pattern": "independent"}
    axes = {"xaxis": _trials(views), "xaxis2": _trials(views), "yaxis2": _axis("tasks inside the band (%)")}
    data = [left, {**right, "xaxis": "x2", "yaxis": "y2"}]
    return _figure(data, "trial", "accepted tasks, a seed", grid=grid, **axes)


def _fresh(views: Views) -> dict[str, Any] | None:
    if not views.fresh:
        return None
    factor, leads = display_scale(views.metrics[0]), views.leads()
    found = [e for _, e in leads]
    dots = {
        "type": "scatter", "mode": "markers", "x": [factor * e.mean for e in found],
        "y": [escape_tags(n) for n, _ in leads],
        "error_x": _error(found, factor), "marker": {"size": 9, "color": BLUE},
    }  # fmt: skip
    return _figure([dots], f"lead: {views.objectives[0]}", "", margin={"t": 20, "l": 260})


PLOTS: dict[str, Callable[[Views], dict[str, Any] | None]] = {
    "history": _history, "front": _front, "slices": _slices, "contour": _contour,
    "importances": _importances, "adaptation": _adaptation, "fresh": _fresh,
}  # fmt: skip
"""Name -> function that makes it; it returns None where the sweep has no data for it."""
